#include "contract/contract.h"

#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/gemm.h"
#include "kitchen/ops/quantized_gemm.h"

#include <cmath>

namespace kitchen::testing {
namespace {

using GemmContract = BackendContract;
INSTANTIATE_TEST_SUITE_P(Backends, GemmContract, ::testing::ValuesIn(backend_names()),
                         &name_of_backend);

struct Sizes {
  std::int64_t batch, m, n, k;
};

/// One element, primes, a tile of 64 x 64 x 16, the tile ± 1, no terms, no rows.
const std::vector<Sizes> kSizes = {{1, 1, 1, 1},    {2, 3, 5, 7},       {1, 64, 64, 16},
                                   {1, 65, 63, 17}, {3, 129, 130, 100}, {1, 5, 6, 0},
                                   {1, 0, 4, 4}};

/// Normal numbers without the extremes of sample(), so that Σ|a||b| is near its typical size
/// everywhere.
Tensor normals(const ContextPtr& cpu, const Shape& shape, DType dtype, std::uint64_t key) {
  const Tensor x = Tensor::empty(cpu, shape, dtype);
  if (x.numel() > 0) ops::normal_init(x, key, 0.0, 1.0, shape, Shape(shape.size(), 0));
  return x;
}

Tensor absolute(const Tensor& x) {
  std::vector<float> values;
  for (const double value : values_of(x)) values.push_back(static_cast<float>(std::fabs(value)));
  return Tensor::from_vector<float>(x.context(), x.shape(), values);
}

/// |actual - exact| <= (k + 3)·2^-24·Σ|a||b| and the rounding of the oracle itself, element by
/// element.
void expect_within_bound(const Tensor& exact, const Tensor& magnitude, std::int64_t k,
                         const Tensor& actual) {
  const std::vector<double> wanted = values_of(exact);
  const std::vector<double> sizes = values_of(magnitude);
  const std::vector<double> found = values_of(actual);
  ASSERT_EQ(wanted.size(), found.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double bound =
        static_cast<double>(k + 4) * 0x1p-24 * (sizes[i] + std::fabs(wanted[i])) + 0x1p-126;
    ASSERT_TRUE(std::fabs(found[i] - wanted[i]) <= bound)
        << "element " << i << ": " << found[i] << ", expected " << wanted[i] << " within " << bound;
  }
}

// labels: ops.gemm
TEST_P(GemmContract, EveryVariantStaysWithinItsBoundInEveryOrientation) {
  for (const std::string& variant : context()->backend().variants<ops::GemmKernel>()) {
    for (const Sizes& s : kSizes) {
      for (const bool turned : {false, true}) {
        SCOPED_TRACE(variant + " " + to_string(Shape{s.batch, s.m, s.n, s.k}) +
                     (turned ? " turned" : ""));
        const Tensor a =
            normals(cpu(), turned ? Shape{s.batch, s.k, s.m} : Shape{s.batch, s.m, s.k},
                    DType::bfloat16, 60);
        const Tensor b =
            normals(cpu(), turned ? Shape{s.batch, s.k, s.n} : Shape{s.batch, s.n, s.k},
                    DType::bfloat16, 61);
        const Tensor bias = normals(cpu(), {s.n}, DType::float32, 62);
        const auto product = [&](const Tensor& left, const Tensor& right, const Tensor& shift,
                                 const std::string& name) {
          const Tensor x = turned ? left.transpose(1, 2) : left;
          const Tensor y = turned ? right.transpose(1, 2) : right;
          return ops::gemm(x, y, DType::float32, {1.0f, shift, name});
        };
        const Guarded left = placed(context(), a, 1);
        const Guarded right = placed(context(), b, 1);
        const Guarded shift = placed(context(), bias, 1);
        Tensor actual;
        on_fresh_stream([&] {
          actual = product(left.tensor(), right.tensor(), shift.tensor(), variant).to(cpu());
        });
        expect_within_bound(product(a, b, bias, "exact"),
                            product(absolute(a), absolute(b), absolute(bias), "exact"), s.k,
                            actual);
      }
    }
  }
}

// labels: ops.gemm
TEST_P(GemmContract, AccumulatesIntoAStridedOutputAndNothingBesideIt) {
  for (const std::string& variant : context()->backend().variants<ops::GemmKernel>()) {
    SCOPED_TRACE(variant);
    const Tensor a = normals(cpu(), {65, 33}, DType::float32, 63);
    const Tensor b = normals(cpu(), {67, 33}, DType::float32, 64);
    const Tensor before = normals(cpu(), {65, 80}, DType::float32, 65);
    const Tensor expected = ops::scale(before, 1.0f);
    ops::gemm_into(a, b, expected.slice(1, 5, 67), true, {0.5f, Tensor(), "exact"});
    const Guarded left = placed(context(), a, 1);
    const Guarded right = placed(context(), b, 0);
    const Guarded out = placed(context(), before, 1);
    on_fresh_stream([&] {
      ops::gemm_into(left.tensor(), right.tensor(), out.tensor().slice(1, 5, 67), true,
                     {0.5f, Tensor(), variant});
    });
    EXPECT_TRUE(out.guards_are_intact());
    // Values are of order 1 and the sum of |products| of order k, times the bound of 2^-24·(k + 4).
    EXPECT_TRUE(close(expected, out.tensor().to(cpu()), 37 * 0x1p-24 * 4 * 33, 0));
    EXPECT_TRUE(same_bits(before.slice(1, 0, 5), out.tensor().slice(1, 0, 5).to(cpu())));
    EXPECT_TRUE(same_bits(before.slice(1, 72, 8), out.tensor().slice(1, 72, 8).to(cpu())));
  }
}

// labels: ops.quantized_gemm
TEST_P(GemmContract, AQuantizedProductIsThatOfTheDequantizedOperands) {
  for (const char* name : {"tensor_e4m3", "b1x128_e4m3_fp32", "mxfp8_e4m3_row", "nvfp4_row"}) {
    SCOPED_TRACE(name);
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    const Tensor a = normals(cpu(), {2, 65, 272}, DType::bfloat16, 66);
    const Tensor b = normals(cpu(), {2, 31, 272}, DType::bfloat16, 67);
    const auto operand = [&](const Tensor& x) { return ops::quantize(x, spec); };
    const QuantizedMatrix left = operand(a);
    const QuantizedMatrix right = operand(b);
    const Tensor exact =
        ops::quantized_gemm(left, right, DType::float32, {1.0f, Tensor(), "ref64"});
    const Tensor magnitude = ops::gemm(absolute(ops::dequantize(left, DType::float32)),
                                       absolute(ops::dequantize(right, DType::float32)),
                                       DType::float32, {1.0f, Tensor(), "exact"});
    const Guarded a_copy = placed(context(), a, 1);
    const Guarded b_copy = placed(context(), b, 1);
    Tensor actual;
    on_fresh_stream([&] {
      actual = ops::quantized_gemm(operand(a_copy.tensor()), operand(b_copy.tensor()),
                                   DType::float32, {1.0f, Tensor(), "fast"})
                   .to(cpu());
    });
    // Scales enter by two more roundings of each product.
    expect_within_bound(exact, magnitude, 272 + 4, actual);
  }
}

}  // namespace
}  // namespace kitchen::testing
