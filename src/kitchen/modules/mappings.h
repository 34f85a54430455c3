#pragma once

#include "kitchen/parallel/process_group_collection.h"

#include <vector>

/// @file  mappings.h
/// @brief The ways in and out of the regions that a model splits over ranks, each a forward
/// collective with
///        its transpose as backward. In a group of one rank all are the identity.
///
/// A null group is this rank's default tensor-parallel group. Dimensions that the group's size does
/// not divide throw AssertionError "is not divisible by". Sums over ranks are in rank order.
/// @source "Megatron-LM", arXiv:1909.08053, operators f and g; "Reducing Activation Recomputation
/// in Large
///         Transformer Models", arXiv:2205.05198, their sequence-parallel forms.

namespace kitchen {

using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

/// f: identity; backward all-reduce.
Tensor copy_to_tensor_model_parallel_region(const Tensor& x,
                                            const ProcessGroupPtr& group = nullptr);

/// g: all-reduce; backward identity.
Tensor reduce_from_tensor_model_parallel_region(const Tensor& x,
                                                const ProcessGroupPtr& group = nullptr);

/// This rank's part of the last dimension; backward all-gather of it.
Tensor scatter_to_tensor_model_parallel_region(const Tensor& x,
                                               const ProcessGroupPtr& group = nullptr);

/// All-gather along the last dimension; backward this rank's part.
Tensor gather_from_tensor_model_parallel_region(const Tensor& x,
                                                const ProcessGroupPtr& group = nullptr);

/// This rank's part of dimension 0; backward all-gather.
Tensor scatter_to_sequence_parallel_region(const Tensor& x, const ProcessGroupPtr& group = nullptr);

/// All-gather along dimension 0. Backward: reduce-scatter if each rank holds a gradient of its own
/// (`tensor_parallel_output_grad`), else this rank's part.
/// @param output_split_sizes rows of each rank; empty: equal.
Tensor gather_from_sequence_parallel_region(
    const Tensor& x, bool tensor_parallel_output_grad = true,
    const ProcessGroupPtr& group = nullptr,
    const std::vector<std::int64_t>& output_split_sizes = {});

/// Reduce-scatter along dimension 0; backward all-gather.
/// @param input_split_sizes rows that each rank gets; empty: equal.
Tensor reduce_scatter_to_sequence_parallel_region(
    const Tensor& x, const ProcessGroupPtr& group = nullptr,
    const std::vector<std::int64_t>& input_split_sizes = {});

/// All-gather along the last dimension; backward reduce-scatter along it.
Tensor all_gather_last_dim_from_tensor_parallel_region(const Tensor& x,
                                                       const ProcessGroupPtr& group = nullptr);

/// Reduce-scatter along the last dimension; backward all-gather along it.
Tensor reduce_scatter_last_dim_to_tensor_parallel_region(const Tensor& x,
                                                         const ProcessGroupPtr& group = nullptr);

/// Sends input_splits[j] rows to rank j and takes output_splits[j] rows from it (both empty: equal
/// parts); backward the way back.
Tensor all_to_all(const ProcessGroupPtr& group, const Tensor& x,
                  const std::vector<std::int64_t>& output_splits = {},
                  const std::vector<std::int64_t>& input_splits = {});

}  // namespace kitchen
