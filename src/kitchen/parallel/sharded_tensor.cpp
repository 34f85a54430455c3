#include "kitchen/parallel/sharded_tensor.h"

#include "kitchen/base/error.h"

#include <algorithm>

namespace kitchen {

namespace {

constexpr const char* kExtraStateSuffix = "_extra_state";

bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

ShardedObject make_object(std::string key, const Tensor& data, ShardedOffsets offsets,
                          ReplicaId replica_id) {
  ShardedObject object{std::move(key), data, {1}, {0}, replica_id};
  if (offsets.empty()) return object;
  std::sort(offsets.begin(), offsets.end());
  object.global_shape.clear();
  object.global_offset.clear();
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto& [axis, rank_offset, fragments] = offsets[i];
    if (axis != static_cast<int>(i)) {
      throw AssertionError("ShardedObject '" + object.key +
                           "': the axes of its offsets must be contiguous from 0, found axis " +
                           std::to_string(axis) + " at place " + std::to_string(i));
    }
    object.global_shape.push_back(fragments);
    object.global_offset.push_back(rank_offset);
  }
  return object;
}

}  // namespace

ShardedTensor ShardedTensor::from_rank_offsets(std::string key, const Tensor& data,
                                               const ShardedOffsets& offsets, ReplicaId replica_id,
                                               int prepend_axis_num) {
  ShardedTensor result;
  result.key = std::move(key);
  result.data = data;
  result.dtype = data.dtype();
  result.local_shape = data.shape();
  result.global_shape.assign(static_cast<std::size_t>(prepend_axis_num), 1);
  result.global_shape.insert(result.global_shape.end(), data.shape().begin(), data.shape().end());
  result.global_offset.assign(result.global_shape.size(), 0);
  result.axis_fragmentations.assign(result.global_shape.size(), 1);
  result.replica_id = replica_id;
  result.prepend_axis_num = prepend_axis_num;
  for (const auto& [axis, rank_offset, fragments] : offsets) {
    if (axis < 0 || static_cast<std::size_t>(axis) >= result.global_shape.size()) {
      throw AssertionError("ShardedTensor '" + result.key + "': axis " + std::to_string(axis) +
                           " of a tensor with " + std::to_string(result.global_shape.size()) +
                           " global axes");
    }
    const auto i = static_cast<std::size_t>(axis);
    result.global_offset[i] = result.global_shape[i] * rank_offset;
    result.global_shape[i] *= fragments;
    result.axis_fragmentations[i] = fragments;
  }
  return result;
}

void ShardedStateDict::set(const std::string& name, ShardedValue value) {
  for (auto& [key, entry] : items_) {
    if (key == name) {
      entry = std::move(value);
      return;
    }
  }
  items_.emplace_back(name, std::move(value));
}

bool ShardedStateDict::contains(const std::string& name) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const auto& item) { return item.first == name; });
}

const ShardedValue& ShardedStateDict::at(const std::string& name) const {
  for (const auto& [key, entry] : items_) {
    if (key == name) return entry;
  }
  throw KeyError("ShardedStateDict: no entry '" + name + "'");
}

ShardedValue& ShardedStateDict::at(const std::string& name) {
  return const_cast<ShardedValue&>(static_cast<const ShardedStateDict&>(*this).at(name));
}

void ShardedStateDict::update(const ShardedStateDict& other) {
  for (const auto& [name, value] : other.items()) set(name, value);
}

std::string& key_of(ShardedValue& value) {
  return std::visit([](auto& entry) -> std::string& { return entry.key; }, value);
}

ShardedStateDict make_sharded_tensors_for_checkpoint(
    const std::vector<std::pair<std::string, Tensor>>& state, const std::string& prefix,
    const std::map<std::string, int>& tp_axis_map, const ShardedOffsets& offsets,
    const std::shared_ptr<ProcessGroup>& tp_group,
    const std::shared_ptr<ProcessGroup>& dp_cp_group) {
  const int prepended = static_cast<int>(offsets.size());
  const ReplicaId replicated{0, tp_group->rank(), dp_cp_group->rank()};
  ShardedStateDict result;
  for (const auto& [name, tensor] : state) {
    const std::string key = prefix + name;
    const auto axis = tp_axis_map.find(name);
    if (ends_with(name, kExtraStateSuffix)) {
      result.set(key, make_object(key, tensor, offsets, replicated));
    } else if (axis != tp_axis_map.end()) {
      ShardedOffsets all = offsets;
      all.emplace_back(axis->second + prepended, tp_group->rank(), tp_group->size());
      result.set(key, ShardedTensor::from_rank_offsets(key, tensor, all,
                                                       {0, 0, dp_cp_group->rank()}, prepended));
    } else {
      result.set(key,
                 ShardedTensor::from_rank_offsets(key, tensor, offsets, replicated, prepended));
    }
  }
  return result;
}

void replace_prefix_for_sharding(ShardedStateDict& dict, const std::string& old_prefix,
                                 const std::string& new_prefix) {
  for (auto& [name, value] : dict.items()) {
    std::string& key = key_of(value);
    if (key.compare(0, old_prefix.size(), old_prefix) != 0) {
      throw ValueError("replace_prefix_for_sharding: key '" + key + "' does not start with '" +
                       old_prefix + "'");
    }
    key = new_prefix + key.substr(old_prefix.size());
  }
}

}  // namespace kitchen
