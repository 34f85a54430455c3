#include "kitchen/base/context.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"

namespace kitchen {

Context::Context(Device device, std::shared_ptr<const Backend> backend,
                 std::shared_ptr<Allocator> allocator, Stream stream)
    : device_(device),
      stream_(stream),
      backend_(std::move(backend)),
      allocator_(std::move(allocator)) {
  if (!backend_) throw ValueError("Context: backend is null");
  if (!allocator_) throw ValueError("Context: allocator is null");
}

std::string_view Context::preferred(std::type_index op) const {
  const auto entry = variants_.find(op);
  return entry == variants_.end() ? std::string_view{} : std::string_view{entry->second};
}

ContextPtr make_meta_context(const Context& planned_for) {
  return std::make_shared<Context>(Device::meta(), planned_for.backend_ptr(),
                                   std::make_shared<CountingAllocator>());
}

ContextPtr default_context() {
  ContextPtr context = current_rank_state().default_context();
  if (!context) {
    throw RuntimeError("default_context: none is set for this rank; call set_default_context first");
  }
  return context;
}

void set_default_context(ContextPtr context) {
  current_rank_state().set_default_context(std::move(context));
}

}  // namespace kitchen
