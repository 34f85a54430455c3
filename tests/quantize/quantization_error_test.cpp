#include "kitchen/ops/quantize.h"

#include "kitchen/formats/codec.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/golden_file.h"

#include <rapidcheck.h>

#include <cmath>
#include <utility>

namespace kitchen {
namespace {

using testing::same_bits;

QuantizedMatrix quantize_as(const Tensor& x, const std::string& scheme) {
  return ops::quantize(x, quantize_spec_from_scheme_name(scheme));
}

// labels: ops.quantization_stats
TEST(QuantizationStats, EqualsTheSumsOverTheDequantizedMatrix) {
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x =
      testing::bf16_tensor(context, {2, 33, 70}, testing::generate_values(66, 70, 5, 1, "outlier"));
  for (const char* scheme : {"tensor_e4m3", "mxfp4_row", "nvfp4_row", "int8_row"}) {
    const QuantizedMatrix q = quantize_as(x, scheme);
    const std::vector<double> values = testing::values_of(x);
    const std::vector<float> back = ops::dequantize(q, DType::float32).to_vector<float>();
    double signal = 0.0;
    double noise = 0.0;
    std::int64_t underflowed = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      signal += values[i] * values[i];
      noise += std::pow(values[i] - static_cast<double>(back[i]), 2);
      if (values[i] != 0.0 && back[i] == 0.0f) ++underflowed;
    }
    const ops::QuantizationStats stats = ops::quantization_stats(x, q);
    EXPECT_NEAR(stats.signal_power, signal, signal * 1e-12);
    EXPECT_NEAR(stats.noise_power, noise, noise * 1e-12);
    EXPECT_EQ(stats.num_underflowed, underflowed);
    EXPECT_EQ(stats.num_saturated, 0) << scheme;
    EXPECT_EQ(stats.num_elements, 2 * 33 * 70);
    EXPECT_NEAR(stats.snr_db(), 10.0 * std::log10(signal / noise), 1e-9);
  }
}

// labels: ops.quantize
TEST(QuantizeProperty, QuantizingTheDequantizedMatrixChangesNothing) {
  const ContextPtr context = reference::make_cpu_context();
  // Power-of-two scales only: others do not invert exactly.
  for (const char* scheme :
       {"tensor_e4m3_pow2", "b1x128_e4m3_pow2", "mxfp8_e5m2_row", "mxfp4_row"}) {
    EXPECT_TRUE(rc::check(std::string("idempotent ") + scheme, [&] {
      const auto values =
          *rc::gen::container<std::vector<int>>(64, rc::gen::inRange(-30000, 30000));
      std::vector<float> floats;
      for (const int v : values) floats.push_back(static_cast<float>(v) * 0.01f);
      const Tensor x = Tensor::from_vector(context, {2, 32}, floats);
      const Tensor once = ops::dequantize(quantize_as(x, scheme), DType::float32);
      const Tensor twice = ops::dequantize(quantize_as(once, scheme), DType::float32);
      RC_ASSERT(bool(same_bits(once, twice)));
    }));
  }
}

// labels: formats.encode
TEST(QuantizeProperty, LargerNumbersNeverGetSmallerValues) {
  for (const formats::FloatSpec& spec : formats::all_formats()) {
    EXPECT_TRUE(rc::check(std::string("monotonic ") + spec.name, [spec] {
      const auto bits =
          *rc::gen::pair(rc::gen::arbitrary<std::uint32_t>(), rc::gen::arbitrary<std::uint32_t>());
      float low = float_from_bits(bits.first);
      float high = float_from_bits(bits.second);
      RC_PRE(!std::isnan(low) && !std::isnan(high));
      if (low > high) std::swap(low, high);
      RC_ASSERT(formats::decode(formats::encode(low, spec), spec) <=
                formats::decode(formats::encode(high, spec), spec));
    }));
  }
}

}  // namespace
}  // namespace kitchen
