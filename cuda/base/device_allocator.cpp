#include "cuda/base/device_allocator.h"

#include "kitchen/base/logger.h"

#include "cuda/base/cuda_error.h"

#include <limits>
#include <string>

namespace kitchen::cuda {

namespace {

cudaStream_t native(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.handle);
}

/// Destructors and deallocation must not throw; at the end of a process the driver may be gone
/// already.
void log_failure(cudaError_t status, const char* what) noexcept {
  if (status == cudaSuccess || status == cudaErrorCudartUnloading) return;
  logger().warning(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Without this a pool gives its memory back to the system at each synchronization.
void keep_freed_memory(cudaMemPool_t pool) {
  std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  KITCHEN_CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

}  // namespace

DeviceAllocator::DeviceAllocator(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  KITCHEN_CUDA_CHECK(cudaMemPoolCreate(&pool_, &properties));
  keep_freed_memory(pool_);
  // Scratch memory of kernels comes from the device's own pool.
  cudaMemPool_t device_pool = nullptr;
  KITCHEN_CUDA_CHECK(cudaDeviceGetDefaultMemPool(&device_pool, device));
  keep_freed_memory(device_pool);
  KITCHEN_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

DeviceAllocator::~DeviceAllocator() {
  log_failure(cudaStreamSynchronize(stream_), "DeviceAllocator: end of the stream");
  log_failure(cudaStreamDestroy(stream_), "DeviceAllocator: end of the stream");
  log_failure(cudaMemPoolDestroy(pool_), "DeviceAllocator: end of the pool");
}

std::uint64_t DeviceAllocator::reserved_bytes() const {
  std::uint64_t bytes = 0;
  KITCHEN_CUDA_CHECK(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &bytes));
  return bytes;
}

void* DeviceAllocator::do_allocate(std::int64_t rounded_bytes, const Stream& stream,
                                   bool* asked_system) {
  const std::uint64_t before = reserved_bytes();
  void* pointer = nullptr;
  const cudaError_t status = cudaMallocFromPoolAsync(
      &pointer, static_cast<std::size_t>(rounded_bytes), pool_, native(stream));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;  // Allocator tells how much is in use
  }
  KITCHEN_CUDA_CHECK(status);
  *asked_system = reserved_bytes() != before;
  if (poison()) {
    KITCHEN_CUDA_CHECK(
        cudaMemsetAsync(pointer, 0xFF, static_cast<std::size_t>(rounded_bytes), native(stream)));
  }
  return pointer;
}

void DeviceAllocator::do_deallocate(void* pointer, std::int64_t /*rounded_bytes*/,
                                    const Stream& stream) noexcept {
  log_failure(cudaFreeAsync(pointer, native(stream)), "DeviceAllocator: free");
}

}  // namespace kitchen::cuda
