# kitchen_backends: available_backends(), written for the libraries that this build has. It lies above all of
# them, so that libkitchen knows no device library.
set(KITCHEN_CUDA_INCLUDE "")
set(KITCHEN_CUDA_ENTRY "")
if(KITCHEN_HAS_CUDA)
  set(KITCHEN_CUDA_INCLUDE "\n#include \"cuda/base/cuda_backend.h\"\n")
  set(KITCHEN_CUDA_ENTRY ",\n          {\"cuda\", &cuda::why_unusable, &cuda::describe_device, &cuda::make_cuda_context,\n           &cuda::cuda_backend}")
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/available_backends.cpp.in
  ${CMAKE_BINARY_DIR}/generated/available_backends.cpp @ONLY)
add_library(kitchen_backends STATIC ${CMAKE_BINARY_DIR}/generated/available_backends.cpp)
target_link_libraries(kitchen_backends PUBLIC kitchen PRIVATE kitchen_flags)
if(KITCHEN_HAS_CUDA)
  target_link_libraries(kitchen_backends PUBLIC kitchen_cuda)
endif()
