/// @file  gpu_bench.cpp
/// @brief Times the memory-bound kernels of the first backend that is asked for, one JSON line
/// each.
///
/// usage: gpu_bench <cpu|cuda>. A sample is as many launches as take 5 ms at least, between two
/// waits for the stream; the line gives the median of 21 samples and the bytes that the kernel must
/// move, by formula.

#include "kitchen/backends/available_backends.h"
#include "kitchen/base/owned_stream.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/quantize.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using kitchen::ContextPtr;
using kitchen::DType;
using kitchen::Tensor;

constexpr int kSamples = 21;
constexpr double kSampleSeconds = 5e-3;

template <class Work>
double seconds_of(const kitchen::Context& context, int launches, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) work();
  kitchen::synchronize(context);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Work>
void report(const ContextPtr& context, const std::string& name, double bytes, const Work& work) {
  seconds_of(*context, 3, work);  // memory pool and clocks
  const double once = std::max(seconds_of(*context, 10, work) / 10, 1e-7);
  const int launches = static_cast<int>(kSampleSeconds / once) + 1;
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i)
    samples.push_back(seconds_of(*context, launches, work) / launches);
  std::sort(samples.begin(), samples.end());
  const double median = samples[kSamples / 2];
  std::printf(
      "{\"kernel\": \"%s\", \"median_us\": %.2f, \"p10_us\": %.2f, \"p90_us\": %.2f, \"GB_s\": "
      "%.1f}\n",
      name.c_str(), median * 1e6, samples[kSamples / 10] * 1e6,
      samples[kSamples - 1 - kSamples / 10] * 1e6, bytes / median * 1e-9);
  std::fflush(stdout);
}

void run(const ContextPtr& context) {
  constexpr std::int64_t kRows = 8192;
  const auto elements = static_cast<double>(kRows * kRows);
  const Tensor x = Tensor::zeros(context, {kRows, kRows}, DType::bfloat16);
  kitchen::ops::fill_inplace(x, 1.25f);
  const Tensor y = Tensor::empty(context, {kRows, kRows}, DType::bfloat16);
  report(context, "copy bf16", 4 * elements, [&] { kitchen::ops::copy_into(x, y); });
  report(context, "copy bf16 transposed", 4 * elements,
         [&] { kitchen::ops::copy_into(x.transpose(0, 1), y); });
  report(context, "cast bf16 to fp32", 6 * elements,
         [&] { kitchen::ops::cast(x, DType::float32); });
  report(context, "add bf16", 6 * elements, [&] { kitchen::ops::add(x, y); });
  for (const std::string& name : kitchen::quantize_scheme_names()) {
    const kitchen::QuantizeSpec spec = kitchen::quantize_spec_from_scheme_name(name);
    const double reads = spec.needs_matrix_amax() ? 4 : 2;
    report(context, "quantize " + name, (reads + 1) * elements,
           [&] { kitchen::ops::quantize(x, spec); });
    const kitchen::QuantizedMatrix q = kitchen::ops::quantize(x, spec);
    report(context, "dequantize " + name, 3 * elements,
           [&] { kitchen::ops::dequantize(q, DType::bfloat16); });
  }
  const kitchen::QuantizeSpec rowwise = kitchen::quantize_spec_from_scheme_name("b1x128_e4m3_fp32");
  report(context, "quantize b1x128_e4m3_fp32 of the transpose", 3 * elements,
         [&] { kitchen::ops::quantize(x.transpose(0, 1), rowwise); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc == 2 ? argv[1] : "";
  try {
    for (const kitchen::AvailableBackend& backend : kitchen::available_backends()) {
      if (backend.name != wanted) continue;
      run(backend.make_context(0));
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 3;
  }
  std::fprintf(stderr, "usage: gpu_bench <cpu|cuda>; '%s' is no backend of this build\n",
               wanted.c_str());
  return 2;
}
