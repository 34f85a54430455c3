#pragma once

#include "kitchen/base/context.h"

#include <string>

namespace kitchen::cuda {

/// The kernel table of CUDA devices. Needs no device.
std::shared_ptr<const Backend> cuda_backend();

/// A context of device `index` with a stream and a caching allocator of its own. The device becomes
/// the calling thread's current one: a rank that is a thread keeps to one device.
/// @throws DeviceError telling what is missing if there is no such device.
ContextPtr make_cuda_context(int index);

/// Why no CUDA device can be used here ("no NVIDIA driver ..."); empty if one can.
std::string why_unusable();

/// Name, compute capability and memory of the first device and the driver's version, in one line.
/// @throws CudaError if there is no device.
std::string describe_device();

}  // namespace kitchen::cuda
