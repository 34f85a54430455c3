#include "cuda/base/cuda_error.h"

#include <string>

namespace kitchen::cuda {

void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  // Takes the error out of the runtime where it is not sticky, so that the next check tells its
  // own.
  (void)cudaGetLastError();
  throw CudaError(std::string(file) + ":" + std::to_string(line) + ": " + call +
                  " failed: " + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")");
}

}  // namespace kitchen::cuda
