#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/parallel/process_group.h"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace kitchen {

/// (axis, rank offset, number of fragments) for each axis that is cut, in units of the local size.
using ShardedOffsets = std::vector<std::tuple<int, std::int64_t, std::int64_t>>;

/// Which replica of (pipeline, tensor, data) parallel copies this one is; only (0, 0, 0) is written.
using ReplicaId = std::array<std::int64_t, 3>;

/// A local tensor and its place in the tensor that all ranks hold together.
struct ShardedTensor {
  std::string key;
  Tensor data;
  DType dtype = DType::float32;
  Shape local_shape;
  Shape global_shape;
  Shape global_offset;
  Shape axis_fragmentations;
  ReplicaId replica_id{};
  int prepend_axis_num = 0;  ///< leading global axes that the local tensor does not have

  /// @param offsets the first `prepend_axis_num` axes exist only globally, each of local size 1.
  /// @throws AssertionError if an axis is outside of the tensor.
  static ShardedTensor from_rank_offsets(std::string key, const Tensor& data,
                                         const ShardedOffsets& offsets, ReplicaId replica_id,
                                         int prepend_axis_num = 0);
};

/// A value that is saved whole (extra state), in a grid of such values.
struct ShardedObject {
  std::string key;
  Tensor data;
  Shape global_shape;
  Shape global_offset;
  ReplicaId replica_id{};
};

/// A tensor that is saved as several: a gated fc1 keeps [gate; up] in one weight, but saves two shards.
struct ShardedTensorFactory {
  std::string key;
  Tensor data;
  ReplicaId replica_id{};
  /// The shards of a factory; reads key and replica there, since both may change after it was made.
  std::function<std::vector<ShardedTensor>(const ShardedTensorFactory& self)> build_from;

  [[nodiscard]] std::vector<ShardedTensor> build() const { return build_from(*this); }
};

using ShardedValue = std::variant<ShardedTensor, ShardedObject, ShardedTensorFactory>;

/// Name -> value, in insertion order.
class ShardedStateDict {
 public:
  void set(const std::string& name, ShardedValue value);
  [[nodiscard]] bool contains(const std::string& name) const;
  /// @throws KeyError naming the name.
  [[nodiscard]] ShardedValue& at(const std::string& name);
  [[nodiscard]] const ShardedValue& at(const std::string& name) const;
  [[nodiscard]] std::vector<std::pair<std::string, ShardedValue>>& items() { return items_; }
  [[nodiscard]] const std::vector<std::pair<std::string, ShardedValue>>& items() const {
    return items_;
  }
  void update(const ShardedStateDict& other);

 private:
  std::vector<std::pair<std::string, ShardedValue>> items_;
};

/// Optional information of the caller of sharded_state_dict.
struct ShardingMetadata {
  std::shared_ptr<ProcessGroup> dp_cp_group;  ///< null: the default group
  bool singleton_local_shards = false;
};
using Metadata = ShardingMetadata;

std::string& key_of(ShardedValue& value);

/// Turns named local tensors into sharded ones, by the rules of api section 1.16: `_extra_state` becomes an
/// object; a name in `tp_axis_map` is split over `tp_group` along that axis; all else is replicated.
ShardedStateDict make_sharded_tensors_for_checkpoint(
    const std::vector<std::pair<std::string, Tensor>>& state, const std::string& prefix,
    const std::map<std::string, int>& tp_axis_map, const ShardedOffsets& offsets,
    const std::shared_ptr<ProcessGroup>& tp_group,
    const std::shared_ptr<ProcessGroup>& dp_cp_group);

/// Replaces the prefix of every value's key. @throws ValueError naming a key that does not start with it.
void replace_prefix_for_sharding(ShardedStateDict& dict, const std::string& old_prefix,
                                 const std::string& new_prefix);

}  // namespace kitchen
