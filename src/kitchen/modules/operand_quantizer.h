#pragma once

#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/parallel/process_group.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen::modules {

/// What the quantizer of one operand of a layer remembers between its uses: the amax history and
/// the scale of delayed scaling, the place in the random stream of stochastic rounding. Most
/// recipes need neither.
class OperandQuantizer {
 public:
  /// Remembers nothing.
  OperandQuantizer() = default;
  /// @param seed of stochastic rounding; ranks that hold different parts of the operand have
  /// different ones.
  OperandQuantizer(const ContextPtr& context, const QuantizerParams& params, std::uint64_t seed);

  [[nodiscard]] bool has_state() const { return history_.defined() || stochastic_; }

  /// What ops::quantize needs besides the operand and its spec. Both copies of a tensor share it.
  [[nodiscard]] ops::QuantizeCall call(bool columnwise) const;

  /// One tensor was quantized for a training step; `copies` are its forms. Notes its amax for the
  /// next scale (noting it twice changes nothing) and moves on in the random stream.
  void note_use(const std::vector<const Operand*>& copies);

  /// The largest amax of this step so far, float32 [1], which ranks that share the tensor reduce by
  /// maximum; undefined without delayed scaling.
  [[nodiscard]] Tensor newest_amax() const;

  /// The end of a training step: the next scale from the history.
  void finish_step();

  /// Bytes of the state: scale and history, and the number of stochastic uses; little-endian.
  [[nodiscard]] std::vector<std::uint8_t> state() const;
  [[nodiscard]] std::size_t state_bytes() const;
  /// @param bytes state_bytes() of them, as state() gave them.
  void set_state(const std::uint8_t* bytes);

 private:
  QuantizerParams params_;
  Tensor history_;  ///< float32 [window]; undefined without delayed scaling
  Tensor scale_;    ///< float32 [1]
  bool stochastic_ = false;
  std::uint64_t seed_ = 0;
  std::uint64_t num_uses_ = 0;  ///< stochastic quantizations so far
};

/// The quantizers of a linear layer's operands.
struct LinearQuantizers {
  OperandQuantizer x;
  OperandQuantizer w;
  OperandQuantizer g;

  [[nodiscard]] bool has_state() const { return x.has_state() || w.has_state() || g.has_state(); }
  /// Scales follow from the amax over the ranks of `group`, which hold parts of the operands.
  void finish_step(const ProcessGroup& group);

  /// A tagged form of all states; empty if there is none.
  [[nodiscard]] std::vector<std::uint8_t> encode() const;
  [[nodiscard]] std::size_t encoded_bytes() const;
  /// Why `bytes` are not the encoded state of quantizers like these; empty if they are.
  [[nodiscard]] std::string mismatch(const std::vector<std::uint8_t>& bytes) const;
  /// @param bytes without a mismatch.
  void decode(const std::vector<std::uint8_t>& bytes);
};

}  // namespace kitchen::modules
