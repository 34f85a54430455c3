#pragma once

#include "kitchen/autograd/node.h"

#include <string>
#include <vector>

namespace kitchen::autograd {

/// Runs the tape backwards from `root` on the calling thread and adds gradients to the leaves.
///
/// Each node runs once, after all nodes that used its outputs; its saved tensors are freed right after.
/// @param grad gradient of the final scalar with respect to root, of root's shape and dtype; undefined: ones,
///             which is only allowed for a single element.
/// @throws ValueError if root takes no part in a graph, or shapes differ; TypeError if dtypes differ.
void backward(const Tensor& root, const Tensor& grad = {});

/// One line of a printed tape.
struct TapeEntry {
  std::string name;
  std::int64_t saved_bytes = 0;         ///< of tensors first saved here; a tensor counts once in the tape
  std::vector<std::size_t> inputs;      ///< indices of the entries that made the inputs
};

/// The nodes behind `root`, newest first, with what each keeps for backward.
std::vector<TapeEntry> describe_tape(const Tensor& root);

}  // namespace kitchen::autograd
