#include "kitchen/train/tensor_bytes.h"

#include "kitchen/base/error.h"
#include "kitchen/base/memory_kernels.h"

#include <fmt/format.h>

namespace kitchen::train {

namespace {

void refuse_meta(const char* what, const Tensor& tensor) {
  if (tensor.context()->is_meta()) {
    throw ValueError(
        fmt::format("{}: the tensor {} is on the meta device and has no bytes; "
                    "materialise it first",
                    what, to_string(tensor.shape())));
  }
}

}  // namespace

std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  refuse_meta("bytes_of", tensor);
  const ContextPtr& context = tensor.context();
  Tensor source = tensor.detach();
  if (!source.is_contiguous()) {
    const Tensor packed = Tensor::empty(context, source.shape(), source.dtype());
    context->launch<CopyStridedKernel>({}, source.const_view(), packed.kernel_view());
    source = packed;
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(source.nbytes()));
  context->launch<CopyToHostKernel>({}, bytes.data(), source.raw_data(), source.nbytes());
  return bytes;
}

void set_bytes(const Tensor& tensor, const std::vector<std::uint8_t>& bytes) {
  refuse_meta("set_bytes", tensor);
  if (static_cast<std::int64_t>(bytes.size()) != tensor.nbytes()) {
    throw ValueError(fmt::format("set_bytes: the tensor {} of {} holds {} bytes, got {}",
                                 to_string(tensor.shape()), to_string(tensor.dtype()),
                                 tensor.nbytes(), bytes.size()));
  }
  const ContextPtr& context = tensor.context();
  if (tensor.is_contiguous()) {
    context->launch<CopyFromHostKernel>({}, tensor.raw_data(), bytes.data(), tensor.nbytes());
  } else {
    const Tensor packed = Tensor::empty(context, tensor.shape(), tensor.dtype());
    context->launch<CopyFromHostKernel>({}, packed.raw_data(), bytes.data(), packed.nbytes());
    context->launch<CopyStridedKernel>({}, packed.const_view(), tensor.kernel_view());
  }
  tensor.bump_version();
}

}  // namespace kitchen::train
