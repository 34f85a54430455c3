#include "kitchen/recipes/predefined.h"

namespace kitchen {

namespace {

QuantizerParams quantizer(const char* format, Scaling scaling) {
  QuantizerParams params;
  params.format = format;
  params.scaling = scaling;
  return params;
}

QuantizerParams pow2(QuantizerParams params) {
  params.pow2 = true;
  return params;
}

QuantizerParams rht(QuantizerParams params) {
  params.rht = true;
  return params;
}

QuantizerParams stochastic(QuantizerParams params) {
  params.stochastic = true;
  return params;
}

QuantizerParams deepgemm(QuantizerParams params) {
  params.convention = BlockConvention::deepgemm;
  return params;
}

/// The settings of the three products.
struct Products {
  MatmulParams fprop;
  MatmulParams dgrad;
  MatmulParams wgrad;
};

constexpr MatmulParams kUnquantized{};

Products products(Accumulate fprop, Accumulate backward,
                  MatmulBackend backend = MatmulBackend::automatic) {
  return {{true, fprop, backend}, {true, backward, backend}, {true, backward, backend}};
}

/// Fast in fprop and promoted in backward: the settings of public fp8 training with per-tensor
/// scales.
Products fp8_products() {
  return products(Accumulate::fast, Accumulate::promoted);
}
Products promoted_products() {
  return products(Accumulate::promoted, Accumulate::promoted);
}
Products emulated_products() {
  return products(Accumulate::fp32, Accumulate::fp32, MatmulBackend::emulation);
}

struct Row {
  const char* name;
  std::optional<std::int64_t> number;
  Evidence evidence;
  QuantizerParams x;
  QuantizerParams w;
  QuantizerParams dy;
  Products matmuls;
};

std::vector<Row> current_scaling_rows() {
  const QuantizerParams e4m3 = quantizer("e4m3", Scaling::tensor_current);
  const QuantizerParams e5m2 = quantizer("e5m2", Scaling::tensor_current);
  Products bf16_wgrad = fp8_products();
  bf16_wgrad.wgrad = kUnquantized;
  return {
      {"bf16", 1, Evidence::public_source, {}, {}, {}, {}},
      {"fp8_cs", 2, Evidence::public_source, e4m3, e4m3, e5m2, fp8_products()},
      {"fp8_cs_pow2", {}, Evidence::ours, pow2(e4m3), pow2(e4m3), pow2(e5m2), fp8_products()},
      {"fp8_cs_e4m3", {}, Evidence::ours, e4m3, e4m3, e4m3, fp8_products()},
      {"fp8_cs_e4m3_pow2", {}, Evidence::ours, pow2(e4m3), pow2(e4m3), pow2(e4m3), fp8_products()},
      {"fp8_cs_bf16_wgrad", {}, Evidence::ours, e4m3, e4m3, e5m2, bf16_wgrad},
      {"fp8_rowwise",
       {},
       Evidence::ours,
       quantizer("e4m3", Scaling::row),
       quantizer("e4m3", Scaling::row),
       quantizer("e5m2", Scaling::row),
       fp8_products()},
      {"fp8_delayed",
       {},
       Evidence::ours,
       quantizer("e4m3", Scaling::tensor_delayed),
       quantizer("e4m3", Scaling::tensor_delayed),
       quantizer("e5m2", Scaling::tensor_delayed),
       fp8_products()},
  };
}

std::vector<Row> float_block_rows() {
  const QuantizerParams line = quantizer("e4m3", Scaling::block1x128);
  const QuantizerParams square = quantizer("e4m3", Scaling::block128x128);
  const QuantizerParams line_e5m2 = quantizer("e5m2", Scaling::block1x128);
  const Products fp8 = promoted_products();
  return {
      {"fp8_block", {}, Evidence::ours, pow2(line), pow2(square), pow2(line), fp8},
      {"fp8_block_fp32", {}, Evidence::ours, line, square, line, fp8},
      {"fp8_block_1d", {}, Evidence::ours, pow2(line), pow2(line), pow2(line), fp8},
      {"fp8_block_hybrid", {}, Evidence::ours, pow2(line), pow2(square), pow2(line_e5m2), fp8},
      {"fp8_block_deepgemm",
       {},
       Evidence::ours,
       deepgemm(line),
       deepgemm(square),
       deepgemm(line),
       fp8},
  };
}

std::vector<Row> microscaling_rows() {
  const QuantizerParams e4m3 = quantizer("e4m3", Scaling::mx32);
  const QuantizerParams e5m2 = quantizer("e5m2", Scaling::mx32);
  const QuantizerParams e2m1 = quantizer("e2m1", Scaling::mx32);
  const Products native = products(Accumulate::fp32, Accumulate::fp32);
  return {
      {"mxfp8", {}, Evidence::ours, e4m3, e4m3, e4m3, native},
      {"mxfp8_emulation", 6001, Evidence::inferred, e4m3, e4m3, e4m3, emulated_products()},
      {"mxfp8_hybrid", {}, Evidence::ours, e4m3, e4m3, e5m2, native},
      {"mxfp4", {}, Evidence::ours, e2m1, e2m1, e2m1, emulated_products()},
  };
}

std::vector<Row> nvfp4_rows() {
  const QuantizerParams line = quantizer("e2m1", Scaling::nvfp4_1d);
  const QuantizerParams square = quantizer("e2m1", Scaling::nvfp4_2d);
  const Products fp4 = emulated_products();
  return {
      {"nvfp4", 6010, Evidence::public_source, line, line, line, fp4},
      {"nvfp4_2d", 9002, Evidence::public_source, line, square, line, fp4},
      {"nvfp4_rht", 960109, Evidence::public_source, rht(line), line, rht(line), fp4},
      {"nvfp4_rht_2d", 9003, Evidence::public_source, rht(line), square, rht(line), fp4},
      {"nvfp4_rht_2d_sr", {}, Evidence::ours, rht(line), square, stochastic(rht(line)), fp4},
  };
}

std::vector<Row> int8_rows() {
  const QuantizerParams int8 = quantizer("int8", Scaling::row);
  Products forward_only;
  forward_only.fprop = {true, Accumulate::fp32, MatmulBackend::automatic};
  return {{"int8_row", {}, Evidence::ours, int8, int8, {}, forward_only}};
}

std::shared_ptr<const QLinearParams> make_params(const Row& row) {
  QLinearParams params;
  params.x_params = row.x;
  params.w_params = row.w;
  params.g_params = row.dy;
  params.mm_fprop = row.matmuls.fprop;
  params.mm_dgrad = row.matmuls.dgrad;
  params.mm_wgrad = row.matmuls.wgrad;
  if (params.mm_fprop.quantized) {
    params.autograd_function_implementation = AutogradFunctionImplementation::QUANTIZED;
  }
  params.name = row.name;
  params.number = row.number;
  params.evidence = row.evidence;
  validate_q_linear_params(params);
  return std::make_shared<const QLinearParams>(std::move(params));
}

}  // namespace

const std::vector<std::shared_ptr<const QLinearParams>>& predefined_linear_recipes() {
  static const std::vector<std::shared_ptr<const QLinearParams>> recipes = [] {
    std::vector<std::shared_ptr<const QLinearParams>> made;
    for (const auto& rows : {current_scaling_rows(), float_block_rows(), microscaling_rows(),
                             nvfp4_rows(), int8_rows()}) {
      for (const Row& row : rows) made.push_back(make_params(row));
    }
    return made;
  }();
  return recipes;
}

}  // namespace kitchen
