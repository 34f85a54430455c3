#include "contract/contract.h"

#include "kitchen/formats/quantized_matrix.h"
#include "kitchen/ops/delayed_scaling.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/ops/scale_layout.h"

#include <cmath>

namespace kitchen::testing {
namespace {

using QuantizeContract = BackendContract;
INSTANTIATE_TEST_SUITE_P(Backends, QuantizeContract, ::testing::ValuesIn(backend_names()),
                         &name_of_backend);

const ops::RoundingStream kRounding{77, (std::uint64_t{3} << 33) + 5, 1};

/// Slices, one element, primes, a block, a block ± 1, no rows.
const std::vector<Shape> kShapes = {{1, 1, 1},     {1, 3, 17},    {1, 32, 32},  {2, 33, 31},
                                    {1, 128, 128}, {1, 129, 127}, {3, 17, 272}, {1, 257, 130},
                                    {1, 0, 64},    {1, 700, 19}};

/// Everything that one quantization writes.
struct Quantized {
  Tensor amax;
  Tensor codes;
  Tensor scale_inv;
};

Quantized reference_of(const Tensor& x, const QuantizeSpec& spec) {
  const QuantizedMatrix q = ops::quantize(x, spec, {kRounding, {}, {}});
  return {q.amax, q.codes, q.scale_inv};
}

/// The outputs of one quantization on the backend under test, between guards.
class GuardedRun {
 public:
  GuardedRun(const ContextPtr& context, const Quantized& like, std::int64_t misalignment)
      : codes_(context, like.codes.shape(), like.codes.dtype(), misalignment),
        scales_(context, like.scale_inv.shape(), like.scale_inv.dtype(), misalignment),
        amax_(context, {like.codes.dim(0)}, DType::float32, 1) {}

  void launch(const ContextPtr& context, const Tensor& x, const QuantizeSpec& spec) const {
    ConstView amax;
    if (spec.needs_matrix_amax()) {
      context->launch<ops::MatrixAmaxKernel>({}, x.const_view(), amax_.view(), spec);
      amax = amax_.view();
    }
    context->launch<ops::QuantizeKernel>({}, x.const_view(), amax, ConstView(), codes_.view(),
                                         scales_.view(), spec, kRounding);
  }

  void expect(const Quantized& expected) const {
    if (expected.amax.defined()) {
      EXPECT_TRUE(amax_.holds(expected.amax));
    }
    EXPECT_TRUE(codes_.holds(expected.codes));
    EXPECT_TRUE(scales_.holds(expected.scale_inv));
  }

  [[nodiscard]] ops::QuantizedView view(const QuantizeSpec& spec) const {
    ConstView amax;
    if (spec.needs_matrix_amax()) amax = amax_.view();
    return {codes_.view(), scales_.view(), amax, spec};
  }

 private:
  Guarded codes_;
  Guarded scales_;
  Guarded amax_;
};

// labels: base.Context ops.quantize
TEST_P(QuantizeContract, EverySchemeGivesTheReferencesBytesAtAnyPlace) {
  for (const std::string& name : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    for (const Shape& shape : kShapes) {
      const DType dtype = kHighPrecision[(shape[1] + shape[2]) % 3];
      SCOPED_TRACE(name + " " + to_string(shape) + " " + to_string(dtype));
      const Tensor x = sample(cpu(), shape, dtype, 11);
      const Quantized expected = reference_of(x, spec);
      for (const std::int64_t misalignment : {0, 1}) {
        const Guarded input = placed(context(), x, misalignment);
        const GuardedRun run(context(), expected, misalignment);
        on_fresh_stream([&] { run.launch(context(), input.tensor(), spec); });
        run.expect(expected);
      }
    }
  }
}

// labels: ops.quantize
TEST_P(QuantizeContract, ATransposedInputGivesTheReferencesBytes) {
  for (const std::string& name : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(name + " " + to_string(shape));
      const Tensor x = sample(cpu(), shape, DType::bfloat16, 12);
      const Quantized expected = reference_of(x.transpose(1, 2), spec);
      const Guarded input = placed(context(), x, 1);
      const GuardedRun run(context(), expected, 0);
      on_fresh_stream([&] { run.launch(context(), input.tensor().transpose(1, 2), spec); });
      run.expect(expected);
    }
  }
}

// labels: ops.quantize
TEST_P(QuantizeContract, NaNAndInfinityGiveTheReferencesBytes) {
  for (const std::string& name : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    for (const DType dtype : kHighPrecision) {
      SCOPED_TRACE(name + " " + to_string(dtype));
      const Tensor x = sample(cpu(), {1, 65, 147}, dtype, 13);
      put_nan(x, 5);
      put_nan(x, 64 * 147);
      if (dtype == DType::float32) {
        x.data<float>()[200] = -HUGE_VALF;
      } else {
        x.data<std::uint16_t>()[200] = dtype == DType::bfloat16 ? 0xFF80 : 0xFC00;
      }
      const Quantized expected = reference_of(x, spec);
      const Guarded input = placed(context(), x, 1);
      const GuardedRun run(context(), expected, 1);
      on_fresh_stream([&] { run.launch(context(), input.tensor(), spec); });
      run.expect(expected);
    }
  }
}

// labels: ops.quantize
TEST_P(QuantizeContract, AlignedMatricesOfWholeBlocksGiveTheReferencesBytes) {
  for (const std::string& name : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    for (const Shape& shape : {Shape{1, 128, 256}, Shape{2, 136, 384}, Shape{1, 200, 128}}) {
      for (const DType dtype : kHighPrecision) {
        SCOPED_TRACE(name + " " + to_string(shape) + " " + to_string(dtype));
        const Tensor x = sample(cpu(), shape, dtype, 17);
        put_nan(x, 3 * shape[2] + 40);
        const Guarded input = placed(context(), x, 0);
        for (const bool turned : {false, true}) {
          SCOPED_TRACE(turned ? "turned" : "as it is");
          const auto side = [turned](const Tensor& t) { return turned ? t.transpose(1, 2) : t; };
          const Quantized expected = reference_of(side(x), spec);
          const GuardedRun run(context(), expected, 0);
          on_fresh_stream([&] { run.launch(context(), side(input.tensor()), spec); });
          run.expect(expected);
        }
      }
    }
  }
}

// labels: ops.quantize
TEST_P(QuantizeContract, EveryBfloat16GivesTheReferencesCode) {
  const Tensor x = Tensor::empty(cpu(), {1, 256, 256}, DType::bfloat16);
  for (std::int64_t i = 0; i < 65536; ++i) {
    x.data<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
  }
  const Tensor one = Tensor::from_vector<float>(cpu(), {1}, {1.0f});
  for (const char* name : {"tensor_e4m3", "tensor_e5m2"}) {
    SCOPED_TRACE(name);
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    const QuantizedMatrix expected = ops::quantize(x, spec, {{}, {}, one});
    const Guarded input = placed(context(), x, 0);
    const Guarded scale = placed(context(), one, 0);
    Tensor codes;
    on_fresh_stream([&] {
      codes = ops::quantize(input.tensor(), spec, {{}, {}, scale.tensor()}).codes.to(cpu());
    });
    EXPECT_TRUE(same_bits(expected.codes, codes));
  }
}

// labels: ops.quantization_stats
TEST_P(QuantizeContract, StatisticsAreTheReferences) {
  for (const char* name : {"tensor_e4m3", "b1x128_e5m2_fp32", "nvfp4_t_rht", "int8_row"}) {
    SCOPED_TRACE(name);
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    const Tensor x = sample(cpu(), {2, 67, 272}, DType::bfloat16, 18);
    // The scale of integers carries a NaN, and then so does the noise: not a number to compare.
    if (!spec.format.is_integer()) put_nan(x, 700);
    const ops::QuantizationStats want = ops::quantization_stats(x, ops::quantize(x, spec));
    const Guarded input = placed(context(), x, 1);
    ops::QuantizationStats found;
    on_fresh_stream([&] {
      found = ops::quantization_stats(input.tensor(), ops::quantize(input.tensor(), spec));
    });
    EXPECT_EQ(want.signal_power, found.signal_power);
    EXPECT_EQ(want.noise_power, found.noise_power);
    EXPECT_EQ(want.num_elements, found.num_elements);
    EXPECT_EQ(want.num_saturated, found.num_saturated);
    EXPECT_EQ(want.num_underflowed, found.num_underflowed);
    EXPECT_EQ(want.num_non_finite, found.num_non_finite);
  }
}

// labels: ops.arrange_scales ops.restore_scales
TEST_P(QuantizeContract, ScalesInABackendsOrderAreTheReferences) {
  for (const char* name : {"b1x128_e4m3_fp32", "b128x128_e4m3_fp32", "mxfp8_e4m3_row", "nvfp4_row"}) {
    SCOPED_TRACE(name);
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    const Tensor x = sample(cpu(), {2, 133, 272}, DType::bfloat16, 19);
    const QuantizedMatrix q = ops::quantize(x, spec);
    const Tensor expected = ops::arrange_scales(q).values;
    const Guarded input = placed(context(), x, 1);
    Tensor arranged;
    Tensor restored;
    on_fresh_stream([&] {
      const ops::LaidOutScales scales = ops::arrange_scales(ops::quantize(input.tensor(), spec));
      arranged = scales.values.to(cpu());
      restored = ops::restore_scales(scales, spec).to(cpu());
    });
    EXPECT_TRUE(same_bits(expected, arranged));
    EXPECT_TRUE(same_bits(q.scale_inv, restored));
  }
}

// labels: ops.record_amax ops.update_delayed_scale
TEST_P(QuantizeContract, DelayedScalesFollowTheReferences) {
  for (const bool most_recent : {false, true}) {
    const auto run = [most_recent](const ContextPtr& context) {
      const Tensor history = Tensor::from_vector<float>(context, {4}, {0.0f, 3.0f, 7.0f, 1.0f});
      const Tensor scale = Tensor::from_vector<float>(context, {1}, {2.0f});
      for (const float amax : {5.0f, 4.0f, HUGE_VALF, 1e-42f}) {
        ops::record_amax(Tensor::from_vector<float>(context, {1}, {amax}), history);
        ops::update_delayed_scale(history, scale, {448.0f, 1, most_recent});
      }
      return std::vector<Tensor>{history, scale};
    };
    const std::vector<Tensor> expected = run(cpu());
    const std::vector<Tensor> actual = run(context());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(same_bits(expected[i], actual[i].to(cpu()))) << most_recent << " " << i;
    }
  }
}

// labels: ops.dequantize
TEST_P(QuantizeContract, DequantizeGivesTheReferencesBits) {
  for (const std::string& name : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(name + " " + to_string(shape));
      const Tensor x = sample(cpu(), shape, DType::bfloat16, 14);
      const QuantizedMatrix q = ops::quantize(x, spec, {kRounding, {}, {}});
      const GuardedRun run(context(), Quantized{q.amax, q.codes, q.scale_inv}, 1);
      const Guarded input = placed(context(), x, 0);
      for (const DType dtype : kHighPrecision) {
        const Guarded out(context(), q.codes.shape(), dtype, 1);
        on_fresh_stream([&] {
          run.launch(context(), input.tensor(), spec);
          context()->launch<ops::DequantizeKernel>({}, run.view(spec), out.view());
        });
        EXPECT_TRUE(out.holds(ops::dequantize(q, dtype)));
      }
    }
  }
}

// labels: ops.quantize
TEST_P(QuantizeContract, AGivenScaleReplacesTheComputedOne) {
  const QuantizeSpec spec = quantize_spec_from_scheme_name("tensor_e4m3");
  const Tensor x = sample(cpu(), {2, 37, 53}, DType::bfloat16, 15);
  const Tensor scale = Tensor::from_vector<float>(cpu(), {2}, {3.5f, 0.125f});
  const QuantizedMatrix expected = ops::quantize(x, spec, {kRounding, {}, scale});
  const Guarded input = placed(context(), x, 1);
  const Guarded given = placed(context(), scale, 1);
  const Guarded codes(context(), expected.codes.shape(), expected.codes.dtype(), 1);
  const Guarded scales(context(), expected.scale_inv.shape(), DType::float32, 1);
  on_fresh_stream([&] {
    context()->launch<ops::QuantizeKernel>({}, input.tensor().const_view(), ConstView(),
                                           ConstView(given.view()), codes.view(), scales.view(),
                                           spec, kRounding);
  });
  EXPECT_TRUE(codes.holds(expected.codes));
  EXPECT_TRUE(scales.holds(expected.scale_inv));
}

// labels: ops.quantize
TEST_P(QuantizeContract, TransposedCodesEqualTheReferences) {
  for (const std::string& name : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    const bool square = spec.granularity.rows == spec.granularity.cols;
    if (!square || spec.stochastic || spec.hadamard) continue;
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(name + " " + to_string(shape));
      const Tensor x = sample(cpu(), shape, DType::bfloat16, 16);
      const QuantizedMatrix q = ops::quantize(x, spec);
      const QuantizedMatrix expected = ops::transpose_quantized(q);
      const GuardedRun run(context(), Quantized{q.amax, q.codes, q.scale_inv}, 1);
      const Guarded input = placed(context(), x, 0);
      const Guarded codes(context(), expected.codes.shape(), expected.codes.dtype(), 1);
      const Guarded scales(context(), expected.scale_inv.shape(), expected.scale_inv.dtype(), 1);
      on_fresh_stream([&] {
        run.launch(context(), input.tensor(), spec);
        context()->launch<ops::TransposeQuantizedKernel>({}, run.view(spec), codes.view(),
                                                         scales.view());
      });
      EXPECT_TRUE(codes.holds(expected.codes));
      EXPECT_TRUE(scales.holds(expected.scale_inv));
    }
  }
}

}  // namespace
}  // namespace kitchen::testing
