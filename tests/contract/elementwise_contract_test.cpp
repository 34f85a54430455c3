#include "contract/contract.h"

#include "kitchen/ops/elementwise.h"

#include <cmath>

namespace kitchen::testing {
namespace {

using ElementwiseContract = BackendContract;
INSTANTIATE_TEST_SUITE_P(Backends, ElementwiseContract, ::testing::ValuesIn(backend_names()),
                         &name_of_backend);

/// None, one, a prime, a pack of 8, a pack ± 1, a block of threads ± 1.
const std::vector<std::int64_t> kSizes = {0, 1, 7, 8, 9, 127, 2047, 2048, 2049, 70001};

// labels: base.Context
TEST_P(ElementwiseContract, CopiesKeepEveryByte) {
  for (const DType dtype : kHighPrecision) {
    const Tensor x = sample(cpu(), {5, 33, 7}, dtype, 20);
    put_nan(x, 3);
    const Guarded input = placed(context(), x, 1);
    EXPECT_TRUE(input.holds(x));
    const Guarded out(context(), {7, 5, 33}, dtype, 1);
    on_fresh_stream([&] {
      context()->launch<CopyStridedKernel>({}, input.tensor().permute({2, 0, 1}).const_view(),
                                           out.view());
    });
    const Tensor expected = Tensor::empty(cpu(), {7, 5, 33}, dtype);
    cpu()->launch<CopyStridedKernel>({}, x.permute({2, 0, 1}).const_view(), expected.kernel_view());
    EXPECT_TRUE(out.holds(expected));
  }
}

// labels: ops.cast
TEST_P(ElementwiseContract, EveryConversionOfEverySizeGivesTheReferencesBits) {
  for (const DType from : kHighPrecision) {
    for (const DType to : kHighPrecision) {
      for (const std::int64_t size : kSizes) {
        SCOPED_TRACE(to_string(from) + " " + to_string(to) + " " + std::to_string(size));
        const Tensor x = sample(cpu(), {size}, from, 21);
        const Tensor expected = Tensor::empty(cpu(), {size}, to);
        cpu()->launch<ops::CastKernel>({}, x.const_view(), expected.kernel_view());
        const Guarded input = placed(context(), x, 0);
        for (const std::int64_t misalignment : {0, 1}) {
          const Guarded out(context(), {size}, to, misalignment);
          on_fresh_stream(
              [&] { context()->launch<ops::CastKernel>({}, ConstView(input.view()), out.view()); });
          EXPECT_TRUE(out.holds(expected));
        }
      }
    }
  }
}

// labels: ops.cast
TEST_P(ElementwiseContract, EveryHalfPrecisionPatternWidensAsTheReference) {
  for (const DType from : {DType::bfloat16, DType::float16}) {
    const Tensor x = Tensor::empty(cpu(), {65536}, from);
    for (std::int64_t i = 0; i < 65536; ++i) {
      x.data<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
    }
    for (const DType to :
         {DType::float32, from == DType::bfloat16 ? DType::float16 : DType::bfloat16}) {
      const Guarded input = placed(context(), x, 0);
      const Guarded out(context(), {65536}, to, 0);
      on_fresh_stream(
          [&] { context()->launch<ops::CastKernel>({}, ConstView(input.view()), out.view()); });
      const Tensor expected = Tensor::empty(cpu(), {65536}, to);
      cpu()->launch<ops::CastKernel>({}, x.const_view(), expected.kernel_view());
      // The payload of a NaN that is widened is not part of the contract: it becomes canonical when
      // narrowed.
      if (to != DType::float32) {
        EXPECT_TRUE(out.holds(expected)) << to_string(from);
      }
      const std::vector<double> values = values_of(out.tensor().to(cpu()));
      const std::vector<double> wanted = values_of(expected);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool equal = std::isnan(wanted[i]) ? std::isnan(values[i]) : values[i] == wanted[i];
        ASSERT_TRUE(equal) << to_string(from) << " pattern " << i;
      }
    }
  }
}

// labels: ops.add ops.scale
TEST_P(ElementwiseContract, ArithmeticGivesTheReferencesBits) {
  for (const std::int64_t size : kSizes) {
    const Tensor a = sample(cpu(), {size}, DType::bfloat16, 22);
    const Tensor b = sample(cpu(), {size}, DType::float32, 23);
    const Guarded left = placed(context(), a, 1);
    const Guarded right = placed(context(), b, 1);
    const auto check = [&](const char* what, const auto& launch) {
      const Tensor expected = Tensor::empty(cpu(), {size}, DType::float32);
      launch(cpu(), a.const_view(), b.const_view(), expected.kernel_view());
      const Guarded out(context(), {size}, DType::float32, 1);
      on_fresh_stream(
          [&] { launch(context(), ConstView(left.view()), ConstView(right.view()), out.view()); });
      EXPECT_TRUE(out.holds(expected)) << what << " " << size;
    };
    check("axpby", [](const ContextPtr& c, ConstView x, ConstView y, View out) {
      c->launch<ops::AxpbyKernel>({}, 0.3f, x, -1.7f, y, out);
    });
    check("multiply", [](const ContextPtr& c, ConstView x, ConstView y, View out) {
      c->launch<ops::MultiplyKernel>({}, x, y, out);
    });
    check("scale", [](const ContextPtr& c, ConstView x, ConstView, View out) {
      c->launch<ops::ScaleKernel>({}, 0.3f, x, out);
    });
    check("fill", [](const ContextPtr& c, ConstView, ConstView, View out) {
      c->launch<ops::FillKernel>({}, 0.3f, out);
    });
  }
}

// labels: ops.add_bias
TEST_P(ElementwiseContract, ABiasIsAddedToEveryRow) {
  const Tensor x = sample(cpu(), {67, 131}, DType::bfloat16, 24);
  const Tensor bias = sample(cpu(), {131}, DType::float32, 25);
  const Tensor expected = Tensor::empty(cpu(), {67, 131}, DType::bfloat16);
  cpu()->launch<ops::AddBiasKernel>({}, x.const_view(), bias.const_view(), expected.kernel_view());
  const Guarded left = placed(context(), x, 1);
  const Guarded right = placed(context(), bias, 1);
  const Guarded out(context(), {67, 131}, DType::bfloat16, 1);
  on_fresh_stream([&] {
    context()->launch<ops::AddBiasKernel>({}, ConstView(left.view()), ConstView(right.view()),
                                          out.view());
  });
  EXPECT_TRUE(out.holds(expected));
}

}  // namespace
}  // namespace kitchen::testing
