#include "kitchen/base/owned_stream.h"

#include "kitchen/base/logger.h"
#include "kitchen/base/memory_kernels.h"

#include <exception>
#include <string>
#include <utility>

namespace kitchen {

OwnedStream::OwnedStream(ContextPtr context)
    : context_(std::move(context)), stream_(context_->backend().get<CreateStreamKernel>()()) {}

OwnedStream::~OwnedStream() {
  try {
    context_->backend().get<DestroyStreamKernel>()(stream_);
  } catch (const std::exception& error) {
    logger().warning(std::string("OwnedStream: ") + error.what());
  }
}

void synchronize(const Context& context) {
  context.launch<SynchronizeKernel>({});
}

}  // namespace kitchen
