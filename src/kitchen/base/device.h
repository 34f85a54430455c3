#pragma once

#include <string>

namespace kitchen {

enum class DeviceType { cpu, cuda, meta };

/// Where a tensor's bytes lie. `meta` has shape and dtype but no storage: it is used to plan memory
/// and to build a model whose parameters are materialised later.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  static Device cpu() { return {DeviceType::cpu, 0}; }
  static Device cuda(int index) { return {DeviceType::cuda, index}; }
  static Device meta() { return {DeviceType::meta, 0}; }

  friend bool operator==(const Device& a, const Device& b) {
    return a.type == b.type && a.index == b.index;
  }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
};

/// "cpu", "cuda:1", "meta".
inline std::string to_string(const Device& device) {
  switch (device.type) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::cuda: return "cuda:" + std::to_string(device.index);
    case DeviceType::meta: return "meta";
  }
  return "unknown";
}

}  // namespace kitchen
