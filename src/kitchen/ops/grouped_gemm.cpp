#include "kitchen/ops/grouped_gemm.h"

#include "kitchen/base/error.h"

#include <numeric>

namespace kitchen::ops {

namespace {

void require_count(const char* op, const char* name, std::size_t count, std::size_t groups) {
  if (count == groups) return;
  throw ValueError(std::string(op) + ": " + std::to_string(count) + " " + name + " for " +
                   std::to_string(groups) + " groups; give one a group");
}

void require_some(const char* op, std::size_t groups) {
  if (groups > 0) return;
  throw ValueError(std::string(op) + ": no groups; give at least one, which may be empty");
}

GemmOptions options_of(const GroupedGemmOptions& options, std::size_t group) {
  return {options.alpha, options.biases.empty() ? Tensor() : options.biases[group],
          options.variant};
}

void require_biases(const char* op, const GroupedGemmOptions& options, std::size_t groups) {
  if (!options.biases.empty()) require_count(op, "biases", options.biases.size(), groups);
}

/// The common number of output columns. @throws ValueError if the groups differ.
std::int64_t common_columns(const char* op, const std::vector<std::int64_t>& columns) {
  require_some(op, columns.size());
  for (const std::int64_t n : columns) {
    if (n == columns[0]) continue;
    throw ValueError(std::string(op) + ": the weights of the groups have n = " +
                     to_string(Shape(columns)) + "; equal sizes are expected");
  }
  return columns[0];
}

}  // namespace

std::vector<Tensor> split_groups(const Tensor& x, const std::vector<std::int64_t>& splits) {
  if (x.rank() != 2) {
    throw ValueError("split_groups: x has shape " + to_string(x.shape()) +
                     ", expected [rows, cols]; view it so");
  }
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    if (split < 0) {
      throw ValueError("split_groups: splits " + to_string(Shape(splits)) +
                       " hold a negative number of rows; 0 stands for an empty group");
    }
    sum += split;
  }
  if (sum != x.dim(0)) {
    throw ValueError("split_groups: the splits " + to_string(Shape(splits)) + " sum to " +
                     std::to_string(sum) + ", but x has " + std::to_string(x.dim(0)) +
                     " rows; every row belongs to one group");
  }
  std::vector<Tensor> groups;
  std::int64_t start = 0;
  for (const std::int64_t split : splits) {
    groups.push_back(x.slice(0, start, split));
    start += split;
  }
  return groups;
}

QuantizedGroups quantize_groups(const Tensor& x, const std::vector<std::int64_t>& splits,
                                const QuantizeSpec& spec, bool columnwise,
                                const std::vector<QuantizeCall>& calls) {
  const std::vector<Tensor> groups = split_groups(x, splits);
  if (!calls.empty()) require_count("quantize_groups", "calls", calls.size(), groups.size());
  QuantizedGroups result;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    result.push_back(quantize(columnwise ? groups[g].transpose(0, 1) : groups[g], spec,
                              calls.empty() ? QuantizeCall() : calls[g]));
  }
  return result;
}

Tensor grouped_gemm(const Tensor& x, const std::vector<std::int64_t>& splits,
                    const std::vector<Tensor>& weights, DType out_dtype,
                    const GroupedGemmOptions& options) {
  const std::vector<Tensor> groups = split_groups(x, splits);
  require_count("grouped_gemm", "weights", weights.size(), groups.size());
  require_biases("grouped_gemm", options, groups.size());
  std::vector<std::int64_t> columns;
  for (const Tensor& weight : weights) columns.push_back(weight.dim(-2));
  const std::int64_t n = common_columns("grouped_gemm", columns);
  const Tensor out = Tensor::empty(x.context(), {x.dim(0), n}, out_dtype);
  const std::vector<Tensor> outs = split_groups(out, splits);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    gemm_into(groups[g], weights[g], outs[g], false, options_of(options, g));
  }
  return out;
}

void grouped_gemm_wgrad_into(const Tensor& dy, const Tensor& x,
                             const std::vector<std::int64_t>& splits,
                             const std::vector<Tensor>& outs, bool accumulate) {
  const std::vector<Tensor> dy_groups = split_groups(dy, splits);
  const std::vector<Tensor> x_groups = split_groups(x, splits);
  require_count("grouped_gemm_wgrad", "outs", outs.size(), splits.size());
  for (std::size_t g = 0; g < splits.size(); ++g) {
    gemm_into(dy_groups[g].transpose(0, 1), x_groups[g].transpose(0, 1), outs[g], accumulate);
  }
}

Tensor grouped_quantized_gemm(const QuantizedGroups& a, const QuantizedGroups& b, DType out_dtype,
                              const GroupedGemmOptions& options) {
  require_some("grouped_quantized_gemm", a.size());
  require_count("grouped_quantized_gemm", "matrices b", b.size(), a.size());
  std::vector<std::int64_t> splits;
  std::vector<std::int64_t> columns;
  for (const QuantizedMatrix& matrix : a) splits.push_back(matrix.codes.dim(-2));
  for (const QuantizedMatrix& matrix : b) columns.push_back(matrix.codes.dim(-2));
  const std::int64_t rows = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
  const std::int64_t n = common_columns("grouped_quantized_gemm", columns);
  const Tensor out = Tensor::empty(a[0].codes.context(), {rows, n}, out_dtype);
  grouped_quantized_gemm_into(a, b, split_groups(out, splits), false, options);
  return out;
}

void grouped_quantized_gemm_into(const QuantizedGroups& a, const QuantizedGroups& b,
                                 const std::vector<Tensor>& outs, bool accumulate,
                                 const GroupedGemmOptions& options) {
  require_some("grouped_quantized_gemm", a.size());
  require_count("grouped_quantized_gemm", "matrices b", b.size(), a.size());
  require_count("grouped_quantized_gemm", "outs", outs.size(), a.size());
  require_biases("grouped_quantized_gemm", options, a.size());
  std::vector<QuantizedProblem> problems;
  for (std::size_t g = 0; g < a.size(); ++g) {
    common_context("grouped_quantized_gemm", {&a[0].codes, &a[g].codes});
    problems.push_back(quantized_problem(a[g], b[g], outs[g], accumulate, options_of(options, g)));
  }
  const ContextPtr& context = a[0].codes.context();
  const auto bytes_of_workspace =
      context->backend().get<GroupedQuantizedGemmWorkspaceKernel>(options.variant);
  const Tensor workspace = Tensor::empty(context, {bytes_of_workspace(problems)}, DType::uint8);
  context->launch<GroupedQuantizedGemmKernel>(options.variant, problems, workspace.raw_data());
  for (const Tensor& out : outs) out.bump_version();
}

}  // namespace kitchen::ops
