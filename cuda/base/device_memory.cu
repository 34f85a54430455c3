/// @file   cuda/base/device_memory.cu
/// @brief  Memory operations of the kernel table; one thread copies one element between strided
/// views.
///
/// Idea     Fills and dense copies are calls of the runtime. Only the copy between views of
/// different
///          strides is a kernel: each thread turns a row-major index into two offsets.
/// Picture  index ─ % size, / size ─> (i0, i1, ...) ─ · strides ─> source offset, target offset
/// Needs    Equal shapes, elements of 1, 2, 4 or 8 bytes at addresses that are multiples of their
/// size. Roofline reads and writes the elements once: 2·bytes. Memory-bound. Expect   Near the copy
/// bandwidth where the last dimension is dense in both views; a transposing copy
///          reads whole sectors for single elements and gets a fraction of it.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     A tile in shared memory for transposing copies.

#include "kitchen/base/memory_kernels.h"

#include "cuda/base/launch.h"
#include "cuda/base/strided.cuh"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

template <class Word>
__global__ void copy_strided_kernel(const Word* __restrict__ source, Word* __restrict__ target,
                                    StridedPair pair, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const Offsets at = offsets_at(pair, i);
    target[at.b] = source[at.a];
  }
}

template <class Word>
void copy_words(const Stream& stream, const ConstView& source, const View& target,
                const StridedPair& pair) {
  copy_strided_kernel<<<blocks_for(source.numel()), kThreads, 0, native(stream)>>>(
      static_cast<const Word*>(source.data), static_cast<Word*>(target.data), pair, source.numel());
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void copy_strided(const Stream& stream, ConstView source, View target) {
  const std::int64_t count = source.numel();
  if (count == 0) return;
  const StridedPair pair = strided_pair(source, target);
  const std::int64_t bytes = size_of(source.dtype);
  if (pair.is_dense()) {
    KITCHEN_CUDA_CHECK(cudaMemcpyAsync(target.data, source.data,
                                       static_cast<std::size_t>(count * bytes),
                                       cudaMemcpyDeviceToDevice, native(stream)));
    return;
  }
  if (bytes == 1) return copy_words<std::uint8_t>(stream, source, target, pair);
  if (bytes == 2) return copy_words<std::uint16_t>(stream, source, target, pair);
  if (bytes == 4) return copy_words<std::uint32_t>(stream, source, target, pair);
  copy_words<std::uint64_t>(stream, source, target, pair);
}

void fill_bytes(const Stream& stream, void* data, int byte, std::int64_t bytes) {
  if (bytes == 0) return;
  KITCHEN_CUDA_CHECK(cudaMemsetAsync(data, byte, static_cast<std::size_t>(bytes), native(stream)));
}

/// Returns when the host bytes have been read: the runtime stages pageable memory before it
/// returns, and for page-locked memory the wait makes it so.
void copy_from_host(const Stream& stream, void* data, const void* host, std::int64_t bytes) {
  if (bytes == 0) return;
  KITCHEN_CUDA_CHECK(cudaMemcpyAsync(data, host, static_cast<std::size_t>(bytes),
                                     cudaMemcpyHostToDevice, native(stream)));
  KITCHEN_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
}

void copy_to_host(const Stream& stream, void* host, const void* data, std::int64_t bytes) {
  if (bytes == 0) return;
  KITCHEN_CUDA_CHECK(cudaMemcpyAsync(host, data, static_cast<std::size_t>(bytes),
                                     cudaMemcpyDeviceToHost, native(stream)));
  KITCHEN_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
}

void synchronize(const Stream& stream) {
  KITCHEN_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
}

Stream create_stream() {
  cudaStream_t stream = nullptr;
  KITCHEN_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return {stream};
}

void destroy_stream(const Stream& stream) {
  KITCHEN_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
  KITCHEN_CUDA_CHECK(cudaStreamDestroy(native(stream)));
}

}  // namespace

void register_memory_kernels(Backend& backend) {
  backend.add<FillBytesKernel>("exact", &fill_bytes);
  backend.add<CopyFromHostKernel>("exact", &copy_from_host);
  backend.add<CopyToHostKernel>("exact", &copy_to_host);
  backend.add<CopyStridedKernel>("exact", &copy_strided);
  backend.add<SynchronizeKernel>("exact", &synchronize);
  backend.add<CreateStreamKernel>("exact", &create_stream);
  backend.add<DestroyStreamKernel>("exact", &destroy_stream);
}

}  // namespace kitchen::cuda
