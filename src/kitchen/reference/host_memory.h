#pragma once

#include "kitchen/base/memory_kernels.h"

namespace kitchen::reference {

/// CPU entries of the memory operations (base/memory_kernels.h).
void fill_bytes(const Stream& stream, void* data, int byte, std::int64_t bytes);
void copy_from_host(const Stream& stream, void* data, const void* host, std::int64_t bytes);
void copy_to_host(const Stream& stream, void* host, const void* data, std::int64_t bytes);
void synchronize(const Stream& stream);
Stream create_stream();
void destroy_stream(const Stream& stream);
void copy_strided(const Stream& stream, ConstView source, View target);

}  // namespace kitchen::reference
