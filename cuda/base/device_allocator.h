#pragma once

#include "kitchen/base/allocator.h"

#include <cuda_runtime_api.h>

namespace kitchen::cuda {

/// Memory of one CUDA device in stream order, cached by a memory pool of the driver that keeps what
/// is freed: after the first training steps no allocation asks the system. Owns the stream that its
/// Context runs on, since the Context holds it and memory is freed in the order of that stream.
class DeviceAllocator : public Allocator {
 public:
  /// `device` must be the calling thread's current one. @throws CudaError.
  explicit DeviceAllocator(int device);
  ~DeviceAllocator() override;
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  [[nodiscard]] Stream stream() const { return {stream_}; }

 protected:
  void* do_allocate(std::int64_t rounded_bytes, const Stream& stream, bool* asked_system) override;
  void do_deallocate(void* pointer, std::int64_t rounded_bytes,
                     const Stream& stream) noexcept override;

 private:
  [[nodiscard]] std::uint64_t reserved_bytes() const;

  cudaMemPool_t pool_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace kitchen::cuda
