#include "common/data.h"
#include "common/lesson.h"

#include "kitchen/formats/codec.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/report/bar_chart.h"
#include "kitchen/report/line_chart.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using formats::FloatSpec;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::normal_tensor;
using tutorials::normal_with_outlier;
using tutorials::within;

// ## 1. The scale of four numbers
//
// The largest of the four sets the scale: amax goes to 448, the others follow. What is stored is
// `scale_inv`, the factor that leads back, since reading happens more often than writing.
void quantize_four_numbers(Lesson& lesson) {
  const Tensor x = Tensor::from_vector<float>(lesson.context(), {1, 4}, {0.02f, -0.5f, 1.0f, 7.0f});
  const QuantizedMatrix q = ops::quantize(x, {formats::kE4M3});
  lesson.number("scale_by_hand", "scale = 448 / amax", 448.0 / 7.0, exact());
  lesson.number("scale_inv", "scale_inv in the result", q.scale_inv.to_vector<float>()[0], exact());
  const std::vector<float> back = ops::dequantize(q, DType::float32).to_vector<float>();
  lesson.print(fmt::format("  back: {} {} {} {}", back[0], back[1], back[2], back[3]));
}

// ## 2. Why scale at all
//
// Gradients are small. Written to E4M3 as they are, numbers of the size 0.001 all fall into the
// subnormal corner of the format and most become 0. The same numbers with a scale use its whole
// range. SQNR, signal over quantization noise in decibels, puts one number on the difference: 20 dB
// more means a tenth of the error. We turn the scale off by handing in a 1.
void compare_with_and_without_scale(Lesson& lesson) {
  const Tensor gradient = normal_tensor(lesson.context(), {16, 256}, 1, 1e-3);
  ops::QuantizeCall no_scale;
  no_scale.scale = Tensor::from_vector<float>(lesson.context(), {1}, {1.0f});
  const QuantizeSpec spec{formats::kE4M3};
  const auto without = ops::quantization_stats(gradient, ops::quantize(gradient, spec, no_scale));
  const auto with = ops::quantization_stats(gradient, ops::quantize(gradient, spec));
  lesson.number("sqnr_without", "SQNR without a scale", without.snr_db(), within(1e-9), "dB");
  lesson.number("sqnr_with", "SQNR with one scale", with.snr_db(), within(1e-9), "dB");
  lesson.number("zeros_without", "numbers lost to 0 without a scale",
                static_cast<double>(without.num_underflowed), exact());
  lesson.number("zeros_with", "numbers lost to 0 with one scale",
                static_cast<double>(with.num_underflowed), exact());
}

// ## 3. The error of a float format does not shrink with the number
//
// A float format keeps a fixed number of digits, so the *relative* error has the same bound from the
// largest number down to the smallest normal one: {{worst_e4m3}} for E4M3. Below that the steps stop
// shrinking and the relative error grows to 1: all is lost. The picture shows the worst error between
// one power of two and the next, after scaling, with the largest number at the right end.
double worst_error(const FloatSpec& spec, double low, double high) {
  constexpr int kSamples = 1000;
  double worst = 0.0;
  for (int i = 0; i <= kSamples; ++i) {
    const auto x = static_cast<float>(low * std::pow(high / low, double{1.0} * i / kSamples));
    const float back = formats::decode(formats::encode(x, spec), spec);
    worst = std::max(worst, std::fabs(double{back} - x) / x);
  }
  return worst;
}

report::LineSeries error_curve(const FloatSpec& spec, int style) {
  report::LineSeries series{fmt::format("{}", spec.name), {}, {}, style, true, false};
  const double largest = formats::max_value(spec);
  for (int octave = -24; octave < 0; ++octave) {
    const double low = largest * std::exp2(octave);
    series.x.push_back(2.0 * low / largest);
    series.y.push_back(worst_error(spec, low, 2.0 * low));
  }
  return series;
}

void draw_error_against_size(Lesson& lesson) {
  report::LineChart chart;
  chart.title = "Worst relative error of a number, by its size";
  chart.description =
      "Three curves over a logarithmic axis. Each is flat at the right and rises to 1 "
      "at the left: E2M1 first, then E4M3, then E5M2.";
  chart.x = {"size relative to amax", true};
  chart.y = {"worst relative error", true};
  chart.series = {error_curve(formats::kE4M3, 0), error_curve(formats::kE5M2, 1),
                  error_curve(formats::kE2M1, 2)};
  lesson.figure("error_by_size.svg", report::line_chart(chart));
  lesson.number("worst_e4m3", "worst relative error of normal numbers in E4M3",
                worst_error(formats::kE4M3, 1.0625, 2.0), exact());
}

// ## 4. What one outlier costs
//
// One scale for all means that the largest value dictates the step for everybody. We plant a single
// 1000 among normal numbers. E4M3 forgives: four exponent bits reach far enough down. E2M1 has two:
// all other values become 0.
void plant_an_outlier(Lesson& lesson) {
  const Tensor calm = normal_tensor(lesson.context(), {16, 256}, 2);
  const Tensor spiked = normal_with_outlier(lesson.context(), {16, 256}, 2, 7, 1000.0f);
  report::BarChart chart;
  chart.title = "Share of the numbers that one scale sends to 0";
  chart.description = "For each format two bars: without and with one outlier of 1000.";
  chart.id = "zeros";
  chart.value_label = "share of 4096 numbers that become 0, in percent";
  chart.series = {{"without outlier", {}, {}}, {"with one outlier", {}, {}}};
  for (const FloatSpec& spec : {formats::kE5M2, formats::kE4M3, formats::kE2M1}) {
    chart.categories.emplace_back(spec.name);
    for (std::size_t i = 0; i < 2; ++i) {
      const Tensor& x = i == 0 ? calm : spiked;
      const auto stats = ops::quantization_stats(x, ops::quantize(x, {spec}));
      const double share = 100.0 * static_cast<double>(stats.num_underflowed) / 4096.0;
      chart.series[i].values.push_back(share);
      lesson.number(fmt::format("zeros_{}_{}", spec.name, i == 0 ? "calm" : "spiked"),
                    fmt::format("{}, {}", spec.name, chart.series[i].name), share, exact(), "%");
    }
  }
  lesson.figure("zeros.svg", report::bar_chart(chart));
}

/// The worst relative rounding error between 1 and 2, and where: half way between two neighbours.
std::string worst_place(const FloatSpec& spec) {
  double worst = 0.0;
  double place = 0.0;
  for (std::uint32_t code = formats::encode(1.0f, spec); formats::decode(code, spec) < 2.0f;
       ++code) {
    const double low = formats::decode(code, spec);
    const double middle = (low + formats::decode(code + 1, spec)) / 2.0;
    if ((middle - low) / middle > worst) {
      worst = (middle - low) / middle;
      place = middle;
    }
  }
  return fmt::format("{} {}", worst, place);
}

std::string worst_of_e4m3(const ContextPtr&) {
  return worst_place(formats::kE4M3);
}

std::string worst_of_the_others(const ContextPtr&) {
  return worst_place(formats::kE5M2) + " " + worst_place(formats::kE2M1);
}

/// Half the smallest code times scale_inv: at or below it a number becomes 0.
std::string thresholds_under_an_outlier(const ContextPtr& context) {
  const Tensor x = Tensor::from_vector<float>(context, {1, 1}, {1000.0f});
  const auto threshold = [&](const FloatSpec& spec) {
    const QuantizedMatrix q = ops::quantize(x, {spec});
    return formats::decode(1, spec) / 2.0f * q.scale_inv.to_vector<float>()[0];
  };
  return fmt::format("{} {}", threshold(formats::kE2M1), threshold(formats::kE4M3));
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "02_quantize_a_tensor",
      {{"The scale of four numbers", quantize_four_numbers},
       {"Why scale at all", compare_with_and_without_scale},
       {"The error of a float format does not shrink with the number", draw_error_against_size},
       {"What one outlier costs", plant_an_outlier}},
      {{"What is the worst relative rounding error of E4M3 between 1 and 2, and at which number?",
        "The worst place is half way between two neighbours, and relative to a small number.",
        worst_of_e4m3},
       {"Change the format: worst error and place for E5M2, then for E2M1?",
        "E5M2 has steps of 1/4 between 1 and 2, E2M1 has one step of 1/2.", worst_of_the_others},
       {"One outlier of 1000, one scale: below which size does a number become 0, in E2M1 and in "
        "E4M3?",
        "Half of the format's smallest value above 0, divided by the scale.",
        thresholds_under_an_outlier}},
      argc, argv);
}
