#pragma once

#include "kitchen/base/tensor.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// @file  golden_file.h
/// @brief Reads tests/golden/golden.json (docs/reference/golden-file.md) and makes its inputs
/// again.

namespace kitchen::testing {

/// The parsed file.
const nlohmann::json& golden();

/// Numbers from a string of hex digits: 2, 4 or 8 a number, most significant first.
std::vector<std::uint8_t> hex8(const std::string& text);
std::vector<std::uint16_t> hex16(const std::string& text);
std::vector<std::uint32_t> hex32(const std::string& text);
std::uint64_t hex64(const std::string& text);
std::vector<float> hex_floats(const std::string& text);

/// The bytes that the hex string of the elements would hold, in that order.
std::vector<std::uint8_t> big_endian_bytes(const Tensor& tensor);
/// FNV-1a 64 of those bytes, as 16 hex digits.
std::string fnv_of(const std::vector<std::uint8_t>& bytes);

/// The generator of inputs: [rows·cols] fp32 values before the rounding to bf16.
std::vector<float> generate_values(std::int64_t rows, std::int64_t cols, std::uint32_t seed,
                                   std::uint32_t tensor_id, const std::string& profile);

/// A host tensor of 16-bit elements from their bits.
Tensor from_bits16(const ContextPtr& context, Shape shape, DType dtype,
                   const std::vector<std::uint16_t>& bits);
/// A float32 tensor from bits.
Tensor from_bits32(const ContextPtr& context, Shape shape, const std::vector<std::uint32_t>& bits);

/// fp32 values rounded to bfloat16, by an arithmetic of its own.
Tensor bf16_tensor(const ContextPtr& context, Shape shape, const std::vector<float>& values);

/// The matrix `name` of the file's `inputs`: made again where the file tells how, else from its
/// bits.
Tensor golden_input(const ContextPtr& context, const std::string& name);

}  // namespace kitchen::testing
