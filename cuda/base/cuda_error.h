#pragma once

#include "kitchen/base/error.h"

#include <cuda_runtime_api.h>

namespace kitchen {

/// A call of the CUDA runtime failed.
struct CudaError : RuntimeError {
  using RuntimeError::RuntimeError;
};

namespace cuda {

/// @throws CudaError naming call, place and cause unless `status` is cudaSuccess.
void check(cudaError_t status, const char* call, const char* file, int line);

}  // namespace cuda
}  // namespace kitchen

#define KITCHEN_CUDA_CHECK(call) ::kitchen::cuda::check((call), #call, __FILE__, __LINE__)
