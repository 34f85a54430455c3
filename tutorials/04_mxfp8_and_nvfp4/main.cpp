#include "common/data.h"
#include "common/lesson.h"

#include "kitchen/base/rng.h"
#include "kitchen/formats/scale_rule.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/report/bar_chart.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using formats::ScaleRule;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::normal_tensor;
using tutorials::within;

QuantizeSpec mxfp8(ScaleRule rule) {
  QuantizeSpec spec;
  spec.granularity = formats::kBlock1x32;
  spec.rule = rule;
  return spec;
}

float first_value(const ContextPtr& context, const std::vector<float>& row, ScaleRule rule) {
  const auto columns = static_cast<std::int64_t>(row.size());
  const Tensor x = Tensor::from_vector<float>(context, {1, columns}, row);
  return ops::dequantize(ops::quantize(x, mxfp8(rule)), DType::float32).to_vector<float>()[0];
}

// ## 1. A scale that is a power of two
//
// An MX block has 32 numbers and one scale byte, E8M0: an exponent and nothing else. The scale can
// then only be right within a factor of two, and somebody must decide which way to err. The MX text
// takes floor(log2 amax) - 8; then 1.9 asks for a code of 486, which is not there, and saturates.
// Rounding the exponent up wastes a bit of range instead and never saturates.
void compare_two_rules(Lesson& lesson) {
  const std::vector<float> block = {1.9f, 0.3f, -0.7f};
  lesson.number("floor", "1.9 with the exponent rounded down",
                first_value(lesson.context(), block, ScaleRule::e8m0_ocp_floor), exact());
  lesson.number("roundup", "1.9 with the exponent rounded up",
                first_value(lesson.context(), block, ScaleRule::e8m0_roundup), exact());
}

// ## 2. The block formats side by side
//
// The three formats spend bits differently: MXFP8 on the numbers, NVFP4 on more and finer scales,
// MXFP4 on neither. Bits an element include the scales; the name of a scheme is all the library
// needs.
struct Scheme {
  const char* key;
  const char* title;
  const char* name;
};
constexpr Scheme kSchemes[] = {{"mxfp8", "MXFP8 (E4M3, 32 numbers)", "mxfp8_e4m3_row"},
                               {"mxfp4", "MXFP4 (E2M1, 32 numbers)", "mxfp4_row"},
                               {"nvfp4", "NVFP4 (E2M1, 16 numbers)", "nvfp4_row"}};

double bits_an_element(const char* scheme, const ContextPtr& context) {
  const Tensor x = Tensor::empty(make_meta_context(*context), {64, 512}, DType::float32);
  const QuantizedMatrix q = ops::quantize(x, quantize_spec_from_scheme_name(scheme));
  const double scale_bits = 8.0 * static_cast<double>(q.scale_inv.nbytes());
  return q.spec.format.bits() + scale_bits / static_cast<double>(q.codes.numel());
}

void compare_the_formats(Lesson& lesson) {
  const Tensor x = normal_tensor(lesson.context(), {64, 512}, 5);
  report::BarChart chart;
  chart.title = "SQNR of normal numbers in three block formats";
  chart.description = "Three bars: MXFP8 is longest, NVFP4 beats MXFP4.";
  chart.id = "formats";
  chart.value_label = "SQNR in dB; behind it the bits an element with scales";
  chart.series = {{"SQNR", {}, {}}};
  for (const Scheme& scheme : kSchemes) {
    const auto spec = quantize_spec_from_scheme_name(scheme.name);
    const double sqnr = ops::quantization_stats(x, ops::quantize(x, spec)).snr_db();
    const double bits = bits_an_element(scheme.name, lesson.context());
    lesson.number(fmt::format("sqnr_{}", scheme.key), scheme.title, sqnr, within(1e-9), "dB");
    chart.categories.emplace_back(scheme.title);
    chart.series[0].values.push_back(sqnr);
    chart.series[0].labels.push_back(fmt::format("{:.1f} dB, {} bits", sqnr, bits));
  }
  lesson.figure("formats.svg", report::bar_chart(chart));
}

// ## 3. Two levels of scales
//
// NVFP4 keeps its block scales in E4M3, finer than powers of two but of narrow range: from 2^-9 to
// 448. A gradient of size 1e-6 would fall out of it. So one fp32 factor a tensor first moves the
// tensor's amax to 448 · 6; the block scales then only have to say how a block differs from the
// largest. Making the tensor a million times smaller changes no code at all.
void show_two_levels(Lesson& lesson) {
  const Tensor x = normal_tensor(lesson.context(), {16, 64}, 6);
  const Tensor small = normal_tensor(lesson.context(), {16, 64}, 6, std::exp2(-20.0));
  const auto spec = quantize_spec_from_scheme_name("nvfp4_row");
  const QuantizedMatrix q = ops::quantize(x, spec);
  const QuantizedMatrix q_small = ops::quantize(small, spec);
  const float amax = q.amax.to_vector<float>()[0];
  lesson.number("amax", "amax of the tensor", amax, exact());
  lesson.number("global", "factor of the tensor, 2688 / amax", formats::nvfp4_global_scale(amax),
                exact());
  const auto codes = q.codes.to_vector<std::uint8_t>();
  const auto small_codes = q_small.codes.to_vector<std::uint8_t>();
  int different = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) different += codes[i] != small_codes[i] ? 1 : 0;
  lesson.number("different", "codes that differ for a tensor 2^20 times smaller", different,
                exact());
}

// ## 4. Rounding with dice
//
// Round 2.3 to E2M1 again and again: always 2, always 0.3 too little. Sums of gradients see that
// error grow with the number of terms. *Stochastic rounding* goes up with the probability that
// makes the mean right: to 3 in three of ten cases. Single values get worse, sums get better. The
// dice are counters: the same seed gives the same bytes on every machine and for every number of
// threads.
double mean_of_roundings(float x, int count) {
  const Rng dice{7, 0};
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t word = dice.word(static_cast<std::uint64_t>(i));
    sum += formats::decode(formats::encode_e2m1_stochastic(x, word), formats::kE2M1);
  }
  return sum / count;
}

void round_with_dice(Lesson& lesson) {
  const float nearest = formats::decode(formats::encode(2.3f, formats::kE2M1), formats::kE2M1);
  lesson.number("nearest", "2.3 rounded to nearest, mean of many", nearest, exact());
  lesson.number("mean_100", "2.3 rounded with dice, mean of 100", mean_of_roundings(2.3f, 100),
                exact());
  lesson.number("mean_10000", "mean of 10000", mean_of_roundings(2.3f, 10000), exact());
}

std::string bits_of_all(const ContextPtr& context) {
  return fmt::format("{} {} {}", bits_an_element("mxfp8_e4m3_row", context),
                     bits_an_element("mxfp4_row", context), bits_an_element("nvfp4_row", context));
}

std::string both_rules_for_1_7(const ContextPtr& context) {
  return fmt::format("{} {}", first_value(context, {1.7f}, ScaleRule::e8m0_ocp_floor),
                     first_value(context, {1.7f}, ScaleRule::e8m0_roundup));
}

/// The share of evenly spread words that round 4.5 up to 6.
std::string share_rounded_up(const ContextPtr&) {
  int up = 0;
  for (std::uint32_t i = 0; i < 0x10000u; ++i) {
    up += formats::encode_e2m1_stochastic(4.5f, i << 16) == formats::encode(6.0f, formats::kE2M1);
  }
  return fmt::format("{}", up / 65536.0);
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "04_mxfp8_and_nvfp4",
      {{"A scale that is a power of two", compare_two_rules},
       {"The block formats side by side", compare_the_formats},
       {"Two levels of scales", show_two_levels},
       {"Rounding with dice", round_with_dice}},
      {{"How many bits does an element cost in MXFP8, MXFP4 and NVFP4, block scales included?",
        "One byte for 32 numbers, 32 numbers and 16 numbers.", bits_of_all},
       {"Change 1.9 to 1.7: what comes back with the exponent rounded down, and up?",
        "1.7 needs a code of 435.2 in the one case and of 217.6 in the other.", both_rules_for_1_7},
       {"With which probability must 4.5 become 6?", "The mean must be 4.5, between 4 and 6.",
        share_rounded_up}},
      argc, argv);
}
