#include "kitchen/ops/quantize.h"

#include "kitchen/formats/packing.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/golden_file.h"

#include <gtest/gtest.h>

#include <set>

namespace kitchen {
namespace {

using testing::big_endian_bytes;
using testing::fnv_of;
using testing::golden;
using testing::hex8;

ContextPtr poisoned_context() {
  auto allocator = std::make_shared<HostAllocator>();
  allocator->set_poison(true);
  return std::make_shared<Context>(Device::cpu(), reference::cpu_backend(), allocator);
}

// labels: golden
TEST(GoldenInputs, AreMadeAgainBitByBit) {
  const ContextPtr context = poisoned_context();
  for (const auto& [name, entry] : golden().at("inputs").items()) {
    const std::vector<std::uint8_t> bytes = big_endian_bytes(testing::golden_input(context, name));
    if (entry.contains("bits")) {
      EXPECT_EQ(bytes, hex8(entry.at("bits"))) << name;
    } else {
      EXPECT_EQ(fnv_of(bytes), entry.at("bf16_fnv").get<std::string>()) << name;
    }
  }
}

/// Codes as the file holds them: 4-bit codes packed in pairs.
std::vector<std::uint8_t> file_codes(const QuantizedMatrix& q, bool packed) {
  std::vector<std::uint8_t> codes = q.codes.to_vector<std::uint8_t>();
  if (!packed) return codes;
  const std::int64_t rows = q.codes.dim(0);
  const std::int64_t cols = q.codes.dim(1);
  std::vector<std::uint8_t> result(static_cast<std::size_t>(rows * formats::packed4_cols(cols)));
  formats::pack4(codes.data(), rows, cols, result.data());
  return result;
}

/// Equal bytes; fp32 scales that are NaN in the file only have to be NaN.
void expect_scales(const nlohmann::json& entry, const Tensor& scale_inv) {
  const std::vector<std::uint8_t> bytes = big_endian_bytes(scale_inv);
  if (entry.contains("scale_fnv")) {
    EXPECT_EQ(fnv_of(bytes), entry.at("scale_fnv").get<std::string>());
    return;
  }
  EXPECT_EQ(bytes, hex8(entry.at("scale")));
}

void expect_case(const ContextPtr& context, const nlohmann::json& entry) {
  const std::string scheme = entry.at("scheme");
  SCOPED_TRACE(entry.at("input").get<std::string>() + " " + scheme);
  Tensor x = testing::golden_input(context, entry.at("input"));
  if (scheme.rfind("nvfp4_t", 0) == 0) x = x.transpose(0, 1);
  ops::QuantizeCall call;
  call.rounding = {0x0123456789ABCDEFu, 7, 0};
  const QuantizedMatrix q = ops::quantize(x, quantize_spec_from_scheme_name(scheme), call);
  EXPECT_EQ(q.codes.shape(), entry.at("shape").get<Shape>());
  EXPECT_EQ(q.scale_inv.shape(), entry.at("scale_shape").get<Shape>());
  expect_scales(entry, q.scale_inv);
  if (entry.contains("amax")) {
    EXPECT_EQ(big_endian_bytes(q.amax), hex8(entry.at("amax")));
  }
  const std::vector<std::uint8_t> codes = file_codes(q, entry.at("packed4").get<int>() != 0);
  if (entry.contains("codes")) {
    EXPECT_EQ(codes, hex8(entry.at("codes")));
  } else {
    EXPECT_EQ(fnv_of(codes), entry.at("codes_fnv").get<std::string>());
  }
}

// labels: ops.quantize N01 N03 N04 N06 golden
TEST(GoldenQuantize, EveryCaseOfTheFileIsMatched) {
  const ContextPtr context = poisoned_context();
  std::set<std::string> schemes;
  for (const auto& entry : golden().at("quantize")) {
    expect_case(context, entry);
    schemes.insert(entry.at("scheme").get<std::string>());
  }
  EXPECT_EQ(schemes.size(), 25u);
}

}  // namespace
}  // namespace kitchen
