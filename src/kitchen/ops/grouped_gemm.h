#pragma once

#include "kitchen/ops/quantized_gemm.h"

#include <vector>

/// @file  grouped_gemm.h
/// @brief Products of groups of rows, each with a matrix of its own: the experts of a layer.
///
/// Rows are sorted by group: group g has the next splits[g] rows. A split may be 0 and need not be
/// a multiple of anything. Scales never mix groups.

namespace kitchen::ops {

/// One matrix a group.
using QuantizedGroups = std::vector<QuantizedMatrix>;

/// Kernel: every problem as QuantizedGemmKernel of the same variant name does it, to the bit.
/// `workspace` has at least the bytes that GroupedQuantizedGemmWorkspaceKernel gave.
struct GroupedQuantizedGemmKernel {
  static constexpr const char* kName = "grouped_quantized_gemm";
  using Fn = void (*)(const Stream&, const std::vector<QuantizedProblem>& problems,
                      void* workspace);
};

/// Bytes of workspace that the GroupedQuantizedGemmKernel of the same variant name needs.
struct GroupedQuantizedGemmWorkspaceKernel {
  static constexpr const char* kName = "grouped_quantized_gemm_workspace";
  using Fn = std::int64_t (*)(const std::vector<QuantizedProblem>& problems);
};

/// Arguments of the grouped products besides the operands.
struct GroupedGemmOptions {
  float alpha = 1.0f;
  std::vector<Tensor> biases;  ///< one [n] a group, or empty
  std::string variant;         ///< as GemmOptions
};

/// The rows of each group: views of x [rows, cols].
/// @throws ValueError naming the splits if one is negative or their sum is not the number of rows,
/// or if x is not a matrix.
std::vector<Tensor> split_groups(const Tensor& x, const std::vector<std::int64_t>& splits);

/// Each group of x [rows, cols] quantized on its own: rows, or for `columnwise` the transposed
/// group, [cols, splits[g]], the operand of a weight gradient.
/// @param calls one a group (seeds of stochastic rounding must differ between groups), or empty.
/// @throws ValueError as split_groups, or if the number of calls is not that of the groups.
QuantizedGroups quantize_groups(const Tensor& x, const std::vector<std::int64_t>& splits,
                                const QuantizeSpec& spec, bool columnwise = false,
                                const std::vector<QuantizeCall>& calls = {});

/// Rows of group g = alpha · (rows of group g of x) · weights[g]ᵀ (+ biases[g]). fprop passes the
/// weights [n, k], dgrad the transposed weights.
/// @returns [rows, n] in `out_dtype`.
/// @throws ValueError as split_groups, without a group, on weights of unequal n, and on lists of
/// unequal length.
Tensor grouped_gemm(const Tensor& x, const std::vector<std::int64_t>& splits,
                    const std::vector<Tensor>& weights, DType out_dtype,
                    const GroupedGemmOptions& options = {});

/// outs[g] = (rows of group g of dy)ᵀ · (rows of group g of x), [n, k]; zeros for an empty group.
/// Adds to the values of `outs` if `accumulate`, which leaves those of an empty group alone.
void grouped_gemm_wgrad_into(const Tensor& dy, const Tensor& x,
                             const std::vector<std::int64_t>& splits,
                             const std::vector<Tensor>& outs, bool accumulate);

/// As grouped_gemm for a = quantize_groups(x, ...) [splits[g], k] and b [n, k] a group.
Tensor grouped_quantized_gemm(const QuantizedGroups& a, const QuantizedGroups& b, DType out_dtype,
                              const GroupedGemmOptions& options = {});

/// outs[g] = alpha · a[g]·b[g]ᵀ (+ biases[g]), or += with `accumulate`. A weight gradient passes
/// the columnwise copies of dy and x, whose reduced dimension may be 0: zeros, or nothing added.
/// @throws ValueError on lists of unequal length, else as quantized_gemm_into.
void grouped_quantized_gemm_into(const QuantizedGroups& a, const QuantizedGroups& b,
                                 const std::vector<Tensor>& outs, bool accumulate,
                                 const GroupedGemmOptions& options = {});

}  // namespace kitchen::ops
