#include "kitchen/analysis/recipe_explanation.h"

#include "kitchen/analysis/operand_facts.h"
#include "kitchen/analysis/text_table.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace kitchen::analysis {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string heading(const char* kind, const std::string& name,
                    const std::optional<std::int64_t>& number, Evidence evidence) {
  std::string text = fmt::format("{} recipe {}", kind, name);
  text += number ? fmt::format(", number {}", *number) : std::string(", without a number");
  switch (evidence) {
    case Evidence::public_source:
      return text + " (public: stands in a public vendor source)\n";
    case Evidence::inferred:
      return text + " (inferred: the meaning follows from a public neighbour)\n";
    case Evidence::ours:
      return text + " (ours: a name of this project)\n";
    case Evidence::user:
      return text + " (described by the user)\n";
  }
  return text + "\n";
}

std::vector<std::string> operand_row(const std::string& use, const QuantizerParams& params,
                                     bool columnwise, bool quantized) {
  const OperandFacts facts = operand_facts(quantized ? params : QuantizerParams(), columnwise);
  return {use, facts.format, facts.block, facts.scale, facts.rounding, facts.bits};
}

std::string product_text(const MatmulParams& matmul) {
  if (!matmul.quantized) return "not quantized";
  std::string text = "quantized; sums ";
  switch (matmul.accumulate) {
    case Accumulate::fast:
      text += "in the tensor core's accumulator";
      break;
    case Accumulate::promoted:
      text += "moved to fp32 every 128 elements";
      break;
    case Accumulate::fp32:
      text += "in fp32";
      break;
  }
  return text + ", backend " + to_string(matmul.backend);
}

constexpr const char* kOnTheCpu = "  on the CPU   always decoded to float32 and multiplied there\n";

std::string native_product(const MatmulParams& matmul, const QuantizerParams& left,
                           const QuantizerParams& right) {
  if (!matmul.quantized) return native_hardware(QuantizerParams(), MatmulBackend::automatic);
  const std::string first = native_hardware(left, matmul.backend);
  const std::string second = native_hardware(right, matmul.backend);
  return first == second ? first : first + " for one operand, " + second + " for the other";
}

/// One line, or one a product where they differ.
std::string native_text(const QLinearParams& params) {
  const std::string fprop = native_product(params.mm_fprop, params.x_params, params.w_params);
  const std::string dgrad = native_product(params.mm_dgrad, params.g_params, params.w_params);
  const std::string wgrad = native_product(params.mm_wgrad, params.g_params, params.x_params);
  if (fprop == dgrad && fprop == wgrad) return fmt::format("  native on    {}\n", fprop);
  return fmt::format(
      "  native on    fprop: {}\n               dgrad: {}\n               wgrad: {}\n", fprop,
      dgrad, wgrad);
}

/// D13: what is kept in which dtype, and what is computed in which.
std::string dtype_table(const QLinearParams& params) {
  const auto codes = [](const MatmulParams& matmul, const QuantizerParams& operand) {
    return matmul.quantized ? operand.format : std::string("bf16");
  };
  const auto uses = [&](const char* first, const std::string& a, const char* second,
                        const std::string& b) {
    return a == b ? a : fmt::format("{} in {}, {} in {}", a, first, b, second);
  };
  const std::string x_kept = params.mm_wgrad.quantized ? params.x_params.format + " codes" : "bf16";
  Rows rows{{"dtypes of a --bf16 run", "stored", "computed with"}};
  rows.push_back({"weights", "bf16, and codes for one step",
                  uses("fprop", codes(params.mm_fprop, params.w_params), "dgrad",
                       codes(params.mm_dgrad, params.w_params))});
  rows.push_back({"activations", "bf16; kept for wgrad: " + x_kept,
                  uses("fprop", codes(params.mm_fprop, params.x_params), "wgrad",
                       codes(params.mm_wgrad, params.x_params))});
  rows.push_back({"output gradients", "bf16",
                  uses("dgrad", codes(params.mm_dgrad, params.g_params), "wgrad",
                       codes(params.mm_wgrad, params.g_params))});
  rows.push_back({"weight gradients", "float32 (main_grad)", "float32 sums"});
  rows.push_back({"main weights", "float32", "float32"});
  rows.push_back({"optimizer moments", "float32", "float32"});
  rows.push_back({"norms, softmax, loss", "bf16 in and out", "float32"});
  rows.push_back({"communication", "compute dtype", "never quantized"});
  if (!params.mm_fprop.quantized) rows[1][1] = "bf16";
  return format_table(rows, "  ") + "  (with --fp32, bf16 above reads float32)\n";
}

std::vector<std::string> header() {
  return {"use", "format", "block", "scale", "rounding", "bits an element"};
}

}  // namespace

std::string short_operand(const QuantizerParams& params) {
  if (!params.quantized()) return params.format;
  static_assert(static_cast<int>(Scaling::nvfp4_2d) == 8, "a new scaling needs a short name");
  std::string text = params.format;
  switch (params.scaling) {
    case Scaling::none:
      break;
    case Scaling::tensor_current:
      text += " tensor";
      break;
    case Scaling::tensor_delayed:
      text += " tensor delayed";
      break;
    case Scaling::row:
      text += " row";
      break;
    case Scaling::block1x128:
      text += " 1x128";
      break;
    case Scaling::block128x128:
      text += " 128x128";
      break;
    case Scaling::mx32:
      text += " 1x32";
      break;
    case Scaling::nvfp4_1d:
      text += " 1x16";
      break;
    case Scaling::nvfp4_2d:
      text += " 16x16";
      break;
  }
  if (params.pow2) text += " pow2";
  if (params.convention == BlockConvention::deepgemm) text += " deepgemm";
  if (params.rht) text += " rht";
  if (params.stochastic) text += " sr";
  return text;
}

std::string explain(const QLinearParams& params) {
  std::string text = heading("Linear", params.name, params.number, params.evidence);
  const bool fprop = params.mm_fprop.quantized;
  const bool dgrad = params.mm_dgrad.quantized;
  const bool wgrad = params.mm_wgrad.quantized;
  text += format_table({header(), operand_row("x in fprop", params.x_params, false, fprop),
                        operand_row("w in fprop", params.w_params, false, fprop),
                        operand_row("dy in dgrad", params.g_params, false, dgrad),
                        operand_row("w in dgrad", params.w_params, true, dgrad),
                        operand_row("dy in wgrad", params.g_params, true, wgrad),
                        operand_row("x in wgrad", params.x_params, true, wgrad)},
                       "  ");
  text += fmt::format(
      "  fprop y = x w^T     {}\n  dgrad dx = dy w     {}\n  wgrad dw = dy^T x   {}\n",
      product_text(params.mm_fprop), product_text(params.mm_dgrad), product_text(params.mm_wgrad));
  return text + native_text(params) + kOnTheCpu + dtype_table(params);
}

std::string explain(const QAttentionParams& params) {
  std::string text = heading("Unfused attention", params.name, params.number, params.evidence);
  const AttentionQuantizer& scores = *params.quantizer_bmm1;
  const AttentionQuantizer& context = *params.quantizer_bmm2;
  const bool bmm1 = scores.matmul().quantized;
  const bool bmm2 = context.matmul().quantized;
  text += format_table({header(), operand_row("q, k in S = q k^T", scores.operand(), false, bmm1),
                        operand_row("p, v in O = p v", context.operand(), false, bmm2),
                        operand_row("q, k in dq, dk", scores.operand(), true, bmm1),
                        operand_row("dS in dq, dk", scores.gradient(), false, bmm1),
                        operand_row("p, v in dp, dv", context.operand(), true, bmm2),
                        operand_row("dO in dp, dv", context.gradient(), false, bmm2)},
                       "  ");
  text += fmt::format("  scores  (bmm1)   {}\n  context (bmm2)   {}\n",
                      product_text(scores.matmul()), product_text(context.matmul()));
  text += "  softmax      never quantized\n";
  return text + fmt::format("  native on    {}\n{}",
                            native_hardware(scores.operand(), scores.matmul().backend), kOnTheCpu);
}

std::string explain(const QFlashAttentionParams& params) {
  std::string text = heading("Flash attention", params.name, std::nullopt, params.evidence);
  text += format_table({{"product", "operands (left@right)"},
                        {"S = q k^T", params.qk_dot_precisions},
                        {"O = p v", params.pv_dot_precisions},
                        {"dv = p^T dO", params.dv_dot_precisions},
                        {"dp = dO v^T", params.dp_dot_precisions},
                        {"dq = dS k", params.dq_dot_precisions},
                        {"dk = dS^T q", params.dk_dot_precisions}},
                       "  ");
  const bool quantized = params.qk_dot_precisions != "bf16@bf16";
  text += fmt::format("  softmax      {}\n", params.use_natural_transcendental_func
                                                 ? "exp"
                                                 : "exp2, log2(e) folded into the softmax scale");
  if (quantized) {
    text += "  scales       one float32 a head from its own amax; 8 bits an element + 32 a head\n";
    text +=
        fmt::format("  p            multiplied by {} before its cast; rounded to nearest even\n",
                    params.p_scale);
    text += "  causality    the scale sees the future: it comes from all tokens of a head\n";
    text += "  native on    fp8 tensor cores (sm_89, sm_90, sm_100)\n";
  } else {
    text += "  scales       none; 16 bits an element\n";
    text += "  native on    any GPU with bf16 tensor cores (sm_80 and later)\n";
  }
  return text + kOnTheCpu;
}

}  // namespace kitchen::analysis
