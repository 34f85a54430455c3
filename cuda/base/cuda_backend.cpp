#include "cuda/base/cuda_backend.h"

#include "kitchen/base/device_error.h"

#include "cuda/base/cuda_error.h"
#include "cuda/base/device_allocator.h"
#include "cuda/register_kernels.h"

#include <cuda_runtime_api.h>

namespace kitchen::cuda {

namespace {

/// The oldest device that the kernels are built for: conversions to bfloat16 and asynchronous
/// copies.
constexpr int kOldestMajor = 8;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_unusable(int index) {
  int driver = 0;
  int runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    (void)cudaGetLastError();
    return "no NVIDIA driver is installed here";
  }
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (status == cudaErrorInsufficientDriver && cudaRuntimeGetVersion(&runtime) == cudaSuccess) {
    return "the NVIDIA driver knows CUDA " + version_text(driver) + ", this build needs " +
           version_text(runtime);
  }
  if (status != cudaSuccess) return std::string("no device: ") + cudaGetErrorString(status);
  if (index < 0 || index >= count) {
    return "device " + std::to_string(index) + " was asked for, this machine has " +
           std::to_string(count);
  }
  int major = 0;
  KITCHEN_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index));
  if (major < kOldestMajor) {
    return "the device has compute capability " + std::to_string(major) +
           ".x, the kernels need 8.0 or newer";
  }
  return {};
}

}  // namespace

std::string why_unusable() {
  return why_unusable(0);
}

std::shared_ptr<const Backend> cuda_backend() {
  static const std::shared_ptr<const Backend> backend = [] {
    auto table = std::make_shared<Backend>("cuda");
    register_cuda_kernels(*table);
    return table;
  }();
  return backend;
}

ContextPtr make_cuda_context(int index) {
  const std::string reason = why_unusable(index);
  if (!reason.empty()) throw DeviceError(to_string(Device::cuda(index)) + ": " + reason);
  KITCHEN_CUDA_CHECK(cudaSetDevice(index));
  auto allocator = std::make_shared<DeviceAllocator>(index);
  const Stream stream = allocator->stream();
  return std::make_shared<Context>(Device::cuda(index), cuda_backend(), std::move(allocator),
                                   stream);
}

std::string describe_device() {
  cudaDeviceProp properties{};
  int driver = 0;
  KITCHEN_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  KITCHEN_CUDA_CHECK(cudaDriverGetVersion(&driver));
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", " +
         std::to_string(properties.totalGlobalMem >> 30) + " GiB, driver for CUDA " +
         version_text(driver);
}

}  // namespace kitchen::cuda
