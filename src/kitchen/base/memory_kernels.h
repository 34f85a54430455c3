#pragma once

#include "kitchen/base/stream.h"
#include "kitchen/base/tensor_view.h"

#include <cstdint>

namespace kitchen {

/// Memory operations that a device library puts into the kernel table, so that `base` includes no vendor
/// header. Bytes are counted, pointers are of the device unless they are named `host`.
struct FillBytesKernel {
  static constexpr const char* kName = "fill_bytes";
  using Fn = void (*)(const Stream&, void* data, int byte, std::int64_t bytes);
};

struct CopyFromHostKernel {
  static constexpr const char* kName = "copy_from_host";
  using Fn = void (*)(const Stream&, void* data, const void* host, std::int64_t bytes);
};

struct CopyToHostKernel {
  static constexpr const char* kName = "copy_to_host";
  /// Returns after the bytes have arrived.
  using Fn = void (*)(const Stream&, void* host, const void* data, std::int64_t bytes);
};

/// Waits until all work put on the stream is done; reports what failed in it.
struct SynchronizeKernel {
  static constexpr const char* kName = "synchronize";
  using Fn = void (*)(const Stream&);
};

/// A new stream of the calling thread's device, independent of all others. See OwnedStream.
struct CreateStreamKernel {
  static constexpr const char* kName = "create_stream";
  using Fn = Stream (*)();
};

/// Waits for the stream's work and destroys it.
struct DestroyStreamKernel {
  static constexpr const char* kName = "destroy_stream";
  using Fn = void (*)(const Stream&);
};

/// Copies between two views of equal shape and dtype; strides may differ.
struct CopyStridedKernel {
  static constexpr const char* kName = "copy_strided";
  using Fn = void (*)(const Stream&, ConstView source, View target);
};

}  // namespace kitchen
