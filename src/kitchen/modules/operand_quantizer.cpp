#include "kitchen/modules/operand_quantizer.h"

#include "kitchen/formats/codec.h"
#include "kitchen/ops/delayed_scaling.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/recipes/quantize_spec_of.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kitchen::modules {

namespace {

/// "KQS" and the version of the encoded form.
constexpr std::array<std::uint8_t, 4> kTag{'K', 'Q', 'S', 1};

void append(std::vector<std::uint8_t>& bytes, const void* data, std::size_t count) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  bytes.insert(bytes.end(), from, from + count);
}

ops::DelayedScaling rule_of(const QuantizerParams& params) {
  const formats::FloatSpec format = quantize_spec_of(params, /*columnwise=*/false).format;
  return {formats::max_value(format), params.margin, params.algorithm == "most_recent"};
}

}  // namespace

OperandQuantizer::OperandQuantizer(const ContextPtr& context, const QuantizerParams& params,
                                   std::uint64_t seed)
    : params_(params), stochastic_(params.quantized() && params.stochastic), seed_(seed) {
  if (params.scaling != Scaling::tensor_delayed) return;
  history_ = Tensor::zeros(context, {params.window}, DType::float32);
  scale_ = Tensor::from_vector(context, {1}, std::vector<float>{1.0f});
}

ops::QuantizeCall OperandQuantizer::call(bool columnwise) const {
  ops::QuantizeCall call;
  call.rounding = {seed_, num_uses_, static_cast<std::uint8_t>(columnwise ? 1 : 0)};
  call.scale = scale_;
  return call;
}

void OperandQuantizer::note_use(const std::vector<const Operand*>& copies) {
  bool is_used = false;
  for (const Operand* copy : copies) {
    if (!copy->quantized) continue;
    is_used = true;
    if (history_.defined()) ops::record_amax(copy->quantized->amax, history_);
  }
  if (is_used && stochastic_) ++num_uses_;
}

Tensor OperandQuantizer::newest_amax() const {
  return history_.defined() ? history_.slice(0, 0, 1) : Tensor();
}

void OperandQuantizer::finish_step() {
  if (history_.defined()) ops::update_delayed_scale(history_, scale_, rule_of(params_));
}

std::size_t OperandQuantizer::state_bytes() const {
  const std::size_t floats =
      history_.defined() ? static_cast<std::size_t>(1 + history_.numel()) : 0;
  return floats * sizeof(float) + (stochastic_ ? sizeof num_uses_ : 0);
}

std::vector<std::uint8_t> OperandQuantizer::state() const {
  std::vector<std::uint8_t> bytes;
  if (history_.defined()) {
    append(bytes, scale_.to_vector<float>().data(), sizeof(float));
    append(bytes, history_.to_vector<float>().data(), static_cast<std::size_t>(history_.nbytes()));
  }
  if (stochastic_) append(bytes, &num_uses_, sizeof num_uses_);
  return bytes;
}

void OperandQuantizer::set_state(const std::uint8_t* bytes) {
  if (history_.defined()) {
    std::vector<float> values(static_cast<std::size_t>(1 + history_.numel()));
    std::memcpy(values.data(), bytes, values.size() * sizeof(float));
    bytes += values.size() * sizeof(float);
    const ContextPtr& context = history_.context();
    ops::copy_into(Tensor::from_vector(context, {1}, std::vector<float>{values[0]}), scale_);
    values.erase(values.begin());
    ops::copy_into(Tensor::from_vector(context, history_.shape(), values), history_);
  }
  if (stochastic_) std::memcpy(&num_uses_, bytes, sizeof num_uses_);
}

void LinearQuantizers::finish_step(const ProcessGroup& group) {
  for (OperandQuantizer* quantizer : {&x, &w, &g}) {
    const Tensor amax = quantizer->newest_amax();
    if (amax.defined()) (void)group.all_reduce_inplace_async(amax, ReduceOp::max).wait();
    quantizer->finish_step();
  }
}

std::size_t LinearQuantizers::encoded_bytes() const {
  if (!has_state()) return 0;
  return kTag.size() + x.state_bytes() + w.state_bytes() + g.state_bytes();
}

std::vector<std::uint8_t> LinearQuantizers::encode() const {
  if (!has_state()) return {};
  std::vector<std::uint8_t> bytes(kTag.begin(), kTag.end());
  for (const OperandQuantizer* quantizer : {&x, &w, &g}) {
    const std::vector<std::uint8_t> state = quantizer->state();
    append(bytes, state.data(), state.size());
  }
  return bytes;
}

std::string LinearQuantizers::mismatch(const std::vector<std::uint8_t>& bytes) const {
  if (bytes.size() < kTag.size() || !std::equal(kTag.begin(), kTag.begin() + 3, bytes.begin())) {
    return std::to_string(bytes.size()) + " bytes that are no quantizer state";
  }
  if (bytes[3] != kTag[3]) {
    return "quantizer state of version " + std::to_string(bytes[3]) +
           ", this program reads version " + std::to_string(kTag[3]);
  }
  if (bytes.size() == encoded_bytes()) return "";
  return "quantizer state of " + std::to_string(bytes.size()) + " bytes, the layer's recipe has " +
         std::to_string(encoded_bytes()) + "; window or operands differ";
}

void LinearQuantizers::decode(const std::vector<std::uint8_t>& bytes) {
  const std::uint8_t* from = bytes.data() + kTag.size();
  for (OperandQuantizer* quantizer : {&x, &w, &g}) {
    quantizer->set_state(from);
    from += quantizer->state_bytes();
  }
}

}  // namespace kitchen::modules
