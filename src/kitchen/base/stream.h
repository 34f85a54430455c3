#pragma once

namespace kitchen {

/// Non-owning handle of an ordered queue of work on a device.
///
/// The CPU has one implicit queue, the calling thread: its handle is null. A GPU backend stores its
/// native stream here, so that `base` needs no vendor header.
struct Stream {
  void* handle = nullptr;

  friend bool operator==(const Stream& a, const Stream& b) { return a.handle == b.handle; }
};

}  // namespace kitchen
