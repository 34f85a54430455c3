#include "common/data.h"
#include "common/lesson.h"

#include "kitchen/ops/quantize.h"
#include "kitchen/report/bar_chart.h"
#include "kitchen/report/heat_map.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using formats::ScaleGranularity;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::normal_with_outlier;
using tutorials::within;

constexpr std::int64_t kRows = 256;
constexpr std::int64_t kCols = 512;

struct Choice {
  const char* key;
  const char* name;
  ScaleGranularity granularity;
};
constexpr Choice kChoices[] = {{"tensor", "one a tensor", formats::kPerTensor},
                               {"row", "one a row", formats::kPerRow},
                               {"square", "128 x 128", formats::kBlock128x128},
                               {"line", "1 x 128", formats::kBlock1x128}};

QuantizeSpec spec_of(const ScaleGranularity& granularity) {
  QuantizeSpec spec;
  spec.format = formats::kE2M1;
  spec.granularity = granularity;
  return spec;
}

/// Normal numbers with one outlier, in row 40 and column 200.
Tensor spiked_matrix(const ContextPtr& context) {
  return normal_with_outlier(context, {kRows, kCols}, 3, 40 * kCols + 200, 100.0f);
}

// ## 1. How many scales
//
// Who shares a scale is a shape: a block of rows by columns, with 0 for "all of them". Nothing else
// in the library knows the schemes by name; the quantizer loops over blocks of that shape.
void count_the_scales(Lesson& lesson) {
  const Tensor x = spiked_matrix(lesson.context());
  for (const Choice& choice : kChoices) {
    const QuantizedMatrix q = ops::quantize(x, spec_of(choice.granularity));
    lesson.number(fmt::format("scales_{}", choice.key), fmt::format("scales, {}", choice.name),
                  static_cast<double>(q.scale_inv.numel()), exact());
  }
}

// ## 2. What they cost
//
// A scale in fp32 takes 32 bits. Shared by many numbers that is little; the sum of code and share
// is what an element really costs. E2M1 needs 4 bits an element before scales.
double bits_an_element(const QuantizedMatrix& q) {
  const double codes = 4.0 * static_cast<double>(q.codes.numel());
  return (codes + 8.0 * static_cast<double>(q.scale_inv.nbytes())) /
         static_cast<double>(q.codes.numel());
}

void count_the_bits(Lesson& lesson) {
  const Tensor x = spiked_matrix(lesson.context());
  for (const Choice& choice : kChoices) {
    const QuantizedMatrix q = ops::quantize(x, spec_of(choice.granularity));
    lesson.number(fmt::format("bits_{}", choice.key), fmt::format("bits, {}", choice.name),
                  bits_an_element(q), exact());
  }
}

// ## 3. What they buy
//
// The same outlier as before, now with a wall around it. One scale a tensor lets it spoil
// everything; with one a row it spoils its row, with squares its square, with 1 x 128 only the 127
// numbers beside it. SQNR hides this: the outlier itself is most of the signal. So we measure the
// noise on the other numbers only, by taking the outlier's own power out of the signal.
double quiet_sqnr(const Tensor& x, const QuantizedMatrix& q) {
  const ops::QuantizationStats stats = ops::quantization_stats(x, q);
  return 10.0 * std::log10((stats.signal_power - 100.0 * 100.0) / stats.noise_power);
}

void compare_the_noise(Lesson& lesson) {
  const Tensor x = spiked_matrix(lesson.context());
  report::BarChart chart;
  chart.title = "SQNR of all numbers but the outlier, by who shares a scale (E2M1)";
  chart.description = "Four bars, growing from one scale a tensor to blocks of 1 x 128.";
  chart.id = "noise";
  chart.value_label = "SQNR without the outlier's own power, in dB";
  chart.series = {{"SQNR", {}, {}}};
  for (const Choice& choice : kChoices) {
    const double sqnr = quiet_sqnr(x, ops::quantize(x, spec_of(choice.granularity)));
    chart.categories.emplace_back(choice.name);
    chart.series[0].values.push_back(sqnr);
    lesson.number(fmt::format("sqnr_{}", choice.key), fmt::format("SQNR, {}", choice.name), sqnr,
                  within(1e-9), "dB");
  }
  lesson.figure("noise.svg", report::bar_chart(chart));
}

// ## 4. Where the noise is
//
// A map makes the walls visible. Each cell stands for a tile of 32 x 64 numbers; the value is the
// root of the mean squared error in it. With squares of 128 x 128 the damage fills exactly one
// square.
void draw_error_map(Lesson& lesson) {
  constexpr std::int64_t kTileRows = 32;
  constexpr std::int64_t kTileCols = 64;
  const Tensor x = spiked_matrix(lesson.context());
  const auto back =
      ops::dequantize(ops::quantize(x, spec_of(formats::kBlock128x128)), DType::float32)
          .to_vector<float>();
  const auto values = x.to_vector<float>();
  report::HeatMap map;
  map.title = "Error by place with one scale for each 128 x 128 numbers";
  map.description = "A map of 8 x 8 tiles; the four rows by two columns of one square stand out.";
  map.id = "map";
  map.value_label = "root mean squared error of a tile of 32 x 64 numbers";
  map.decimals = 2;
  map.values.assign(static_cast<std::size_t>(kRows / kTileRows * (kCols / kTileCols)), 0.0);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < kCols; ++c) {
      const auto i = static_cast<std::size_t>(r * kCols + c);
      const double error = double{values[i]} - back[i];
      const auto tile =
          static_cast<std::size_t>(r / kTileRows * (kCols / kTileCols) + c / kTileCols);
      map.values[tile] += error * error / double{kTileRows * kTileCols};
    }
  }
  for (double& value : map.values) value = std::sqrt(value);
  for (std::int64_t r = 0; r < kRows; r += kTileRows) map.rows.push_back(fmt::format("row {}", r));
  for (std::int64_t c = 0; c < kCols; c += kTileCols)
    map.columns.push_back(fmt::format("col {}", c));
  lesson.figure("error_map.svg", report::heat_map(map));
}

// ## 5. The edge
//
// Matrices are not made of whole blocks. The last block of a row of 300 has 44 numbers and a scale
// of its own; nothing is padded, and nothing beyond the edge is read.
void quantize_a_ragged_row(Lesson& lesson) {
  const Tensor row = normal_with_outlier(lesson.context(), {1, 300}, 4, 299, 100.0f);
  const QuantizedMatrix q = ops::quantize(row, spec_of(formats::kBlock1x128));
  lesson.number("ragged_scales", "scales of a row of 300", static_cast<double>(q.scale_inv.numel()),
                exact());
}

/// Scales of a [4096, 11008] matrix in blocks of 1 x 128; the meta device has shapes and no values.
std::string scales_of_a_weight(const ContextPtr& context) {
  const Tensor x = Tensor::empty(make_meta_context(*context), {4096, 11008}, DType::float32);
  const QuantizedMatrix q = ops::quantize(x, spec_of(formats::kBlock1x128));
  return fmt::format("{}", q.scale_inv.numel());
}

std::string spoiled_by_a_small_block(const ContextPtr& context) {
  const QuantizedMatrix q = ops::quantize(spiked_matrix(context), spec_of(formats::kBlock1x32));
  return fmt::format("{} {}", q.codes.numel() / q.scale_inv.numel() - 1, bits_an_element(q));
}

std::string columns_of_the_transpose(const ContextPtr& context) {
  const QuantizedMatrix q =
      ops::quantize(spiked_matrix(context).transpose(0, 1), spec_of(formats::kBlock1x128));
  return fmt::format("{} {}", q.scale_inv.dim(0), q.scale_inv.dim(1));
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "03_scaling_granularity",
      {{"How many scales", count_the_scales},
       {"What they cost", count_the_bits},
       {"What they buy", compare_the_noise},
       {"Where the noise is", draw_error_map},
       {"The edge", quantize_a_ragged_row}},
      {{"How many scales has a weight of [4096, 11008] in blocks of 1 x 128?",
        "11008 is 86 times 128.", scales_of_a_weight},
       {"Change the blocks to 1 x 32: how many numbers does the outlier spoil besides itself, and "
        "how "
        "many bits does an element cost?",
        "A scale of 32 bits is now shared by 32 numbers of 4 bits.", spoiled_by_a_small_block},
       {"Quantize the transposed matrix in blocks of 1 x 128: what is the shape of its scales?",
        "The transposed matrix has 512 rows of 256.", columns_of_the_transpose}},
      argc, argv);
}
