#pragma once

#include "kitchen/base/context.h"
#include "kitchen/base/stream.h"

namespace kitchen {

/// A stream of its own on a context's device, next to the context's. Waits for its work in the
/// destructor. Put ops on it with a StreamGuard.
class OwnedStream {
 public:
  explicit OwnedStream(ContextPtr context);
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  [[nodiscard]] const Stream& get() const { return stream_; }

 private:
  ContextPtr context_;
  Stream stream_;
};

/// Waits until the context's current stream has done all its work.
/// @throws RuntimeError telling what failed in it.
void synchronize(const Context& context);

}  // namespace kitchen
