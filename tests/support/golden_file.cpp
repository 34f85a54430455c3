#include "support/golden_file.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rng.h"

#include <cmath>
#include <cstring>
#include <fstream>

namespace kitchen::testing {

namespace {

template <class T>
std::vector<T> parse_hex(const std::string& text, std::size_t digits) {
  if (text.size() % digits != 0) throw ValueError("golden file: odd number of digits");
  std::vector<T> numbers;
  for (std::size_t i = 0; i < text.size(); i += digits) {
    numbers.push_back(static_cast<T>(std::stoull(text.substr(i, digits), nullptr, 16)));
  }
  return numbers;
}

/// bf16 bits by splitting into quotient and remainder: not the formula of the codec.
std::uint16_t bf16_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const std::uint32_t high = bits / 65536;
  const std::uint32_t rest = bits % 65536;
  const bool up = rest > 32768 || (rest == 32768 && high % 2 == 1);
  return static_cast<std::uint16_t>(high + (up ? 1 : 0));
}

}  // namespace

const nlohmann::json& golden() {
  static const nlohmann::json file = [] {
    std::ifstream stream(std::string(KITCHEN_SOURCE_DIR) + "/tests/golden/golden.json");
    if (!stream) throw IOError("tests/golden/golden.json cannot be read");
    return nlohmann::json::parse(stream);
  }();
  return file;
}

std::vector<std::uint8_t> hex8(const std::string& text) {
  return parse_hex<std::uint8_t>(text, 2);
}
std::vector<std::uint16_t> hex16(const std::string& text) {
  return parse_hex<std::uint16_t>(text, 4);
}
std::vector<std::uint32_t> hex32(const std::string& text) {
  return parse_hex<std::uint32_t>(text, 8);
}
std::uint64_t hex64(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

std::vector<float> hex_floats(const std::string& text) {
  const std::vector<std::uint32_t> bits = hex32(text);
  std::vector<float> values(bits.size());
  if (!bits.empty()) std::memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
  return values;
}

std::vector<std::uint8_t> big_endian_bytes(const Tensor& tensor) {
  std::vector<std::uint8_t> bytes;
  const auto append = [&](std::uint64_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    }
  };
  if (tensor.dtype() == DType::float32) {
    for (const float value : tensor.to_vector<float>()) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      append(bits, 4);
    }
  } else if (size_of(tensor.dtype()) == 2) {
    for (const std::uint16_t bits : tensor.to_vector<std::uint16_t>()) append(bits, 2);
  } else {
    return tensor.to_vector<std::uint8_t>();
  }
  return bytes;
}

std::string fnv_of(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::vector<float> generate_values(std::int64_t rows, std::int64_t cols, std::uint32_t seed,
                                   std::uint32_t tensor_id, const std::string& profile) {
  const std::uint64_t key = (std::uint64_t{0x474F4C44u} << 32) | seed;
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    const Words4 w = philox4x32({{static_cast<std::uint32_t>(i), 0, tensor_id, 0}}, key);
    int sum = 0;
    for (int byte = 0; byte < 4; ++byte) sum += static_cast<int>((w.v[0] >> (8 * byte)) & 255u);
    double value = (sum - 510) / 128.0;
    const int low = static_cast<int>(w.v[1] & 15u);
    if (profile == "wide") value = std::ldexp(value, low - 8);
    if (profile == "grad") value = std::ldexp(value, low - 24);
    if (profile == "outlier" && (w.v[2] & 255u) == 0) value *= 64.0;
    if (profile == "bands") {
      value = std::ldexp(value, -static_cast<int>(3 * (i / cols % 5) + 4 * (i % cols / 32 % 3)));
    }
    values.push_back(static_cast<float>(value));
  }
  return values;
}

Tensor from_bits16(const ContextPtr& context, Shape shape, DType dtype,
                   const std::vector<std::uint16_t>& bits) {
  const Tensor tensor = Tensor::empty(context, std::move(shape), dtype);
  if (!bits.empty()) std::memcpy(tensor.raw_data(), bits.data(), bits.size() * sizeof(bits[0]));
  return tensor;
}

Tensor from_bits32(const ContextPtr& context, Shape shape, const std::vector<std::uint32_t>& bits) {
  const Tensor tensor = Tensor::empty(context, std::move(shape), DType::float32);
  if (!bits.empty()) std::memcpy(tensor.raw_data(), bits.data(), bits.size() * sizeof(bits[0]));
  return tensor;
}

Tensor bf16_tensor(const ContextPtr& context, Shape shape, const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(bf16_bits(value));
  return from_bits16(context, std::move(shape), DType::bfloat16, bits);
}

Tensor golden_input(const ContextPtr& context, const std::string& name) {
  const nlohmann::json& entry = golden().at("inputs").at(name);
  const auto shape = entry.at("shape").get<Shape>();
  if (entry.contains("profile")) {
    const auto values = generate_values(shape[0], shape[1], entry.at("seed"), entry.at("tensor_id"),
                                        entry.at("profile"));
    return bf16_tensor(context, shape, values);
  }
  if (entry.at("dtype") == "f32") return from_bits32(context, shape, hex32(entry.at("bits")));
  return from_bits16(context, shape, DType::bfloat16, hex16(entry.at("bits")));
}

}  // namespace kitchen::testing
