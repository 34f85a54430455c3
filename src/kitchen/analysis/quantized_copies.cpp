#include "kitchen/analysis/quantized_copies.h"

#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"
#include "kitchen/formats/packing.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/train/safetensors.h"
#include "kitchen/train/tensor_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace kitchen::analysis {

namespace {

QuantizeSpec spec_of(const std::string& scheme) {
  const std::vector<std::string> known = quantize_scheme_names();
  if (std::find(known.begin(), known.end(), scheme) != known.end()) {
    return quantize_spec_from_scheme_name(scheme);
  }
  throw ValueError(fmt::format("--scheme '{}' is not known; --list-schemes lists them. {}", scheme,
                               did_you_mean(scheme, known)));
}

Tensor packed4(const Tensor& codes) {
  const std::int64_t cols = codes.dim(-1);
  const std::int64_t rows = cols == 0 ? 0 : codes.numel() / cols;
  Shape shape = codes.shape();
  shape.back() = formats::packed4_cols(cols);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(num_elements(shape)));
  formats::pack4(train::bytes_of(codes).data(), rows, cols, bytes.data());
  return Tensor::from_vector(codes.context(), shape, bytes);
}

void add_copy(const std::string& side, const QuantizedMatrix& copy, train::TensorsByName& tensors,
              train::SafetensorsMetadata& metadata) {
  const bool is_packed = copy.codes.dtype() == DType::float4_e2m1;
  tensors.emplace_back(side + "_codes", is_packed ? packed4(copy.codes) : copy.codes);
  tensors.emplace_back(side + "_scale", copy.scale_inv);
  metadata[side + "_codes.format"] = copy.spec.format.name;
  metadata[side + "_codes.shape"] = to_string(copy.codes.shape());
  metadata[side + "_codes.packed4"] = is_packed ? "1" : "0";
}

}  // namespace

bool describes_transpose(const std::string& scheme) {
  return scheme.rfind("nvfp4_t", 0) == 0;
}

QuantizedCopies quantize_both(const Tensor& x, const std::string& scheme, const RoundingKey& key) {
  const QuantizeSpec spec = spec_of(scheme);
  if (key.offset >= std::uint64_t{1} << 56) {
    throw ValueError(fmt::format("--offset {} is too large, expected below 2^56", key.offset));
  }
  QuantizeSpec rowwise = spec;
  if (describes_transpose(scheme)) rowwise.hadamard = false;
  ops::QuantizeCall first;
  first.rounding = {key.seed, key.offset, 0};
  ops::QuantizeCall second;
  second.rounding = {key.seed, key.offset, 1};
  return {scheme, ops::quantize(x, rowwise, first),
          ops::quantize(x.transpose(-2, -1), spec, second)};
}

void dump_copies(const std::string& path, const QuantizedCopies& copies, const RoundingKey& key,
                 bool may_overwrite) {
  if (!may_overwrite && std::filesystem::exists(path)) {
    throw ValueError(path + ": exists; take another --dump, or --force to overwrite it");
  }
  train::TensorsByName tensors;
  train::SafetensorsMetadata metadata{{"scheme", copies.scheme},
                                      {"seed", std::to_string(key.seed)},
                                      {"offset", std::to_string(key.offset)}};
  add_copy("rowwise", copies.rowwise, tensors, metadata);
  add_copy("columnwise", copies.columnwise, tensors, metadata);
  const QuantizedMatrix& described =
      describes_transpose(copies.scheme) ? copies.columnwise : copies.rowwise;
  if (described.amax.defined()) tensors.emplace_back("amax", described.amax);
  if (described.spec.hadamard) tensors.emplace_back("rowwise_amax", copies.rowwise.amax);
  const std::string partial = path + ".partial";
  try {
    (void)train::save_safetensors(partial, tensors, metadata);
    std::filesystem::rename(partial, path);
  } catch (const std::exception&) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw;
  }
}

}  // namespace kitchen::analysis
