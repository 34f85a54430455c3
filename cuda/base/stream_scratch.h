#pragma once

#include "kitchen/base/stream.h"

#include "cuda/base/launch.h"

#include <cstdint>

namespace kitchen::cuda {

/// Temporary device memory of one launch, taken and given back in the stream's order from the
/// device's own pool. For the few contracts whose signature hands a kernel no workspace.
class StreamScratch {
 public:
  StreamScratch(const Stream& stream, std::int64_t bytes) : stream_(native(stream)) {
    if (bytes > 0) {
      KITCHEN_CUDA_CHECK(cudaMallocAsync(&data_, static_cast<std::size_t>(bytes), stream_));
    }
  }
  // A failure here would be the sticky error of a kernel, which the next check tells.
  ~StreamScratch() {
    if (data_ != nullptr) (void)cudaFreeAsync(data_, stream_);
  }
  StreamScratch(const StreamScratch&) = delete;
  StreamScratch& operator=(const StreamScratch&) = delete;

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
};

}  // namespace kitchen::cuda
