#include "kitchen/base/error.h"
#include "kitchen/base/math.h"
#include "kitchen/ops/quantized_gemm.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/golden_file.h"

#include <cmath>
#include <map>

namespace kitchen {
namespace {

using testing::close;
using testing::golden;

ContextPtr poisoned_context() {
  auto allocator = std::make_shared<HostAllocator>();
  allocator->set_poison(true);
  return std::make_shared<Context>(Device::cpu(), reference::cpu_backend(), allocator);
}

/// Scheme names of x, w and dy; `_col` names the columnwise copy where it differs.
struct RecipeRow {
  const char* x;
  const char* w;
  const char* dy;
  const char* x_col = nullptr;
  const char* dy_col = nullptr;
  bool has_wgrad = true;
};

const std::map<std::string, RecipeRow>& recipes() {
  static const std::map<std::string, RecipeRow> rows{
      {"fp8_cs", {"tensor_e4m3", "tensor_e4m3", "tensor_e5m2"}},
      {"fp8_cs_pow2", {"tensor_e4m3_pow2", "tensor_e4m3_pow2", "tensor_e5m2_pow2"}},
      {"fp8_cs_e4m3", {"tensor_e4m3", "tensor_e4m3", "tensor_e4m3"}},
      {"fp8_cs_e4m3_pow2", {"tensor_e4m3_pow2", "tensor_e4m3_pow2", "tensor_e4m3_pow2"}},
      {"fp8_rowwise", {"row_e4m3", "row_e4m3", "row_e5m2"}},
      {"fp8_block", {"b1x128_e4m3_pow2", "b128x128_e4m3_pow2", "b1x128_e4m3_pow2"}},
      {"fp8_block_fp32", {"b1x128_e4m3_fp32", "b128x128_e4m3_fp32", "b1x128_e4m3_fp32"}},
      {"fp8_block_1d", {"b1x128_e4m3_pow2", "b1x128_e4m3_pow2", "b1x128_e4m3_pow2"}},
      {"fp8_block_hybrid", {"b1x128_e4m3_pow2", "b128x128_e4m3_pow2", "b1x128_e5m2_pow2"}},
      {"fp8_block_deepgemm",
       {"b1x128_e4m3_deepgemm", "b128x128_e4m3_deepgemm", "b1x128_e4m3_deepgemm"}},
      {"mxfp8", {"mxfp8_e4m3_row", "mxfp8_e4m3_row", "mxfp8_e4m3_row"}},
      {"mxfp8_emulation", {"mxfp8_e4m3_row", "mxfp8_e4m3_row", "mxfp8_e4m3_row"}},
      {"mxfp8_hybrid", {"mxfp8_e4m3_row", "mxfp8_e4m3_row", "mxfp8_e5m2_row"}},
      {"mxfp4", {"mxfp4_row", "mxfp4_row", "mxfp4_row"}},
      {"nvfp4", {"nvfp4_row", "nvfp4_row", "nvfp4_row"}},
      {"nvfp4_2d", {"nvfp4_row", "nvfp4_2d", "nvfp4_row"}},
      {"nvfp4_rht", {"nvfp4_row", "nvfp4_row", "nvfp4_row", "nvfp4_t_rht", "nvfp4_t_rht"}},
      {"nvfp4_rht_2d", {"nvfp4_row", "nvfp4_2d", "nvfp4_row", "nvfp4_t_rht", "nvfp4_t_rht"}},
      {"nvfp4_rht_2d_sr",
       {"nvfp4_row", "nvfp4_2d", "nvfp4_row_sr", "nvfp4_t_rht", "nvfp4_t_rht_sr"}},
      {"fp8_cs_bf16_wgrad", {"tensor_e4m3", "tensor_e4m3", "tensor_e5m2", nullptr, nullptr, false}},
  };
  return rows;
}

struct LinearInputs {
  Tensor x;   ///< [M, K]
  Tensor w;   ///< [N, K]
  Tensor dy;  ///< [M, N]
};

LinearInputs linear_inputs(const ContextPtr& context) {
  const auto& entry = golden().at("linear");
  const std::int64_t m = entry.at("M");
  const std::int64_t k = entry.at("K");
  const std::int64_t n = entry.at("N");
  const std::uint32_t seed = entry.at("seed");
  std::vector<float> dy = testing::generate_values(m, n, seed, 3, "bands");
  for (float& value : dy) value = std::ldexp(value, -12);
  return {testing::bf16_tensor(context, {m, k}, testing::generate_values(m, k, seed, 1, "bands")),
          testing::bf16_tensor(context, {n, k}, testing::generate_values(n, k, seed, 2, "wide")),
          testing::bf16_tensor(context, {m, n}, dy)};
}

// labels: golden
TEST(GoldenLinear, InputsAreMadeAgainBitByBit) {
  const LinearInputs inputs = linear_inputs(poisoned_context());
  const auto& entry = golden().at("linear");
  EXPECT_EQ(testing::big_endian_bytes(inputs.x), testing::hex8(entry.at("x")));
  EXPECT_EQ(testing::big_endian_bytes(inputs.w), testing::hex8(entry.at("w")));
  EXPECT_EQ(testing::big_endian_bytes(inputs.dy), testing::hex8(entry.at("dy")));
}

using Operands = std::map<std::string, QuantizedMatrix>;

Operands make_operands(const LinearInputs& inputs, const RecipeRow& row) {
  const auto copy = [](const Tensor& x, const char* scheme, std::uint8_t usage) {
    ops::QuantizeCall call;
    call.rounding = {0x0123456789ABCDEFu, 7, usage};
    return ops::quantize(x, quantize_spec_from_scheme_name(scheme), call);
  };
  Operands operands;
  operands["x_row"] = copy(inputs.x, row.x, 0);
  operands["w_row"] = copy(inputs.w, row.w, 0);
  operands["dy_row"] = copy(inputs.dy, row.dy, 0);
  operands["w_col"] = copy(inputs.w.transpose(0, 1), row.w, 1);
  if (!row.has_wgrad) return operands;
  operands["x_col"] = copy(inputs.x.transpose(0, 1), row.x_col ? row.x_col : row.x, 1);
  operands["dy_col"] = copy(inputs.dy.transpose(0, 1), row.dy_col ? row.dy_col : row.dy, 1);
  return operands;
}

void expect_operand(const nlohmann::json& entry, const QuantizedMatrix& q) {
  EXPECT_EQ(q.codes.shape(), entry.at("shape").get<Shape>());
  EXPECT_EQ(q.scale_inv.shape(), entry.at("scale_shape").get<Shape>());
  EXPECT_EQ(testing::fnv_of(q.codes.to_vector<std::uint8_t>()),
            entry.at("codes_fnv").get<std::string>());
  EXPECT_EQ(testing::big_endian_bytes(q.scale_inv), testing::hex8(entry.at("scale")));
  if (entry.contains("amax")) {
    EXPECT_EQ(testing::big_endian_bytes(q.amax), testing::hex8(entry.at("amax")));
  }
}

// labels: ops.quantize golden
TEST(GoldenLinear, OperandsOfEveryRecipeAreExact) {
  const LinearInputs inputs = linear_inputs(poisoned_context());
  std::size_t checked = 0;
  for (const auto& recipe : golden().at("linear").at("cases")) {
    const std::string name = recipe.at("name");
    if (name == "bf16") continue;  // holds no quantized operand
    SCOPED_TRACE(name);
    const Operands operands = make_operands(inputs, recipes().at(name));
    EXPECT_EQ(operands.size(), recipe.at("operands").size());
    for (const auto& [operand, entry] : recipe.at("operands").items()) {
      SCOPED_TRACE(operand);
      expect_operand(entry, operands.at(operand));
    }
    ++checked;
  }
  EXPECT_EQ(checked, recipes().size());
}

const nlohmann::json& output_entry(const nlohmann::json& recipe, const std::string& output) {
  const nlohmann::json& entry = recipe.at("outputs").at(output);
  if (entry.contains("f32")) return entry;
  for (const auto& other : golden().at("linear").at("cases")) {
    if (other.at("name") == entry.at("same_as")) return other.at("outputs").at(output);
  }
  throw ValueError("golden file: same_as names no case");
}

/// y, dx or dw of a recipe against the file: `ref64` to one fp32 rounding, the others to the stated
/// bound.
void expect_output(const nlohmann::json& recipe, const std::string& output,
                   const Operands& operands, const std::string& variant) {
  const std::map<std::string, std::pair<const char*, const char*>> products{
      {"y", {"x_row", "w_row"}}, {"dx", {"dy_row", "w_col"}}, {"dw", {"dy_col", "x_col"}}};
  const auto& [a, b] = products.at(output);
  ops::GemmOptions options;
  options.variant = variant;
  const Tensor actual =
      ops::quantized_gemm(operands.at(a), operands.at(b), DType::float32, options);
  std::vector<double> expected;
  for (const float v : testing::hex_floats(output_entry(recipe, output).at("f32"))) {
    expected.push_back(v);
  }
  const std::string bound = recipe.at("outputs").at(output).at("atol_fp32_accum");
  const double atol = std::stod(bound);
  SCOPED_TRACE(output + " " + variant);
  // fp64 sums in another order differ by 2^-29 of an fp32 sum's bound, and may flip one rounding.
  const bool is_exact = variant == "ref64";
  EXPECT_TRUE(close(expected, testing::values_of(actual), is_exact ? std::ldexp(atol, -29) : atol,
                    is_exact ? std::ldexp(1.0, -23) : 0.0));
}

// labels: ops.quantized_gemm golden
TEST(GoldenLinear, OutputsOfEveryRecipeAndVariantAreWithinTheBound) {
  const ContextPtr context = poisoned_context();
  const LinearInputs inputs = linear_inputs(context);
  const auto variants = context->backend().variants<ops::QuantizedGemmKernel>();
  EXPECT_EQ(variants.size(), 3u);
  for (const auto& recipe : golden().at("linear").at("cases")) {
    const std::string name = recipe.at("name");
    if (name == "bf16") continue;
    SCOPED_TRACE(name);
    const RecipeRow& row = recipes().at(name);
    const Operands operands = make_operands(inputs, row);
    for (const std::string& variant : variants) {
      expect_output(recipe, "y", operands, variant);
      expect_output(recipe, "dx", operands, variant);
      if (row.has_wgrad) expect_output(recipe, "dw", operands, variant);
    }
  }
}

// labels: ops.quantized_gemm golden
TEST(GoldenEpilogue, AlphaThenBiasThenAccumulationThenOneRounding) {
  const ContextPtr context = poisoned_context();
  const auto& entry = golden().at("epilogue");
  // Row scales turn the sums into the file's accumulators: codes are 1, so a·bᵀ is 1 times both
  // scales.
  const std::vector<float> acc = testing::hex_floats(entry.at("acc"));
  const auto n = static_cast<std::int64_t>(acc.size());
  QuantizedMatrix b =
      ops::quantize(Tensor::from_vector(context, {n, 1}, std::vector<float>(acc.size(), 448.0f)),
                    quantize_spec_from_scheme_name("row_e4m3"));
  std::fill(b.codes.data<std::uint8_t>(), b.codes.data<std::uint8_t>() + n, std::uint8_t{0x38});
  std::copy(acc.begin(), acc.end(), b.scale_inv.data<float>());
  QuantizedMatrix a =
      ops::quantize(Tensor::from_vector(context, {1, 1}, std::vector<float>{448.0f}),
                    quantize_spec_from_scheme_name("row_e4m3"));
  *a.codes.data<std::uint8_t>() = 0x38;
  for (const std::string variant : {"fast", "ref32"}) {
    ops::GemmOptions options;
    options.variant = variant;
    options.alpha = testing::hex_floats(entry.at("alpha"))[0];
    const Tensor sum = Tensor::from_vector(context, {1, n}, testing::hex_floats(entry.at("c_f32")));
    ops::quantized_gemm_into(a, b, sum, true, options);
    EXPECT_EQ(testing::big_endian_bytes(sum), testing::hex8(entry.at("main_grad_out_f32")))
        << variant;
    options.bias =
        testing::from_bits16(context, {n}, DType::bfloat16, testing::hex16(entry.at("bias_bf16")));
    EXPECT_EQ(testing::big_endian_bytes(ops::quantized_gemm(a, b, DType::float32, options)),
              testing::hex8(entry.at("bias_out_f32")))
        << variant;
    EXPECT_EQ(testing::big_endian_bytes(ops::quantized_gemm(a, b, DType::bfloat16, options)),
              testing::hex8(entry.at("bias_out_bf16")))
        << variant;
  }
}

}  // namespace
}  // namespace kitchen
