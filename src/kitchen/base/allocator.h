#pragma once

#include "kitchen/base/stream.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace kitchen {

/// Bytes handed out by an allocator. Sizes are rounded up to kAllocationGranularity.
struct AllocatorStats {
  std::int64_t live_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t num_allocations = 0;  ///< calls of allocate since construction
  std::int64_t num_system_allocations = 0;  ///< of these, the ones that asked the system for memory
};

inline constexpr std::int64_t kAllocationGranularity = 64;

/// Owner of a device's memory. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;

  /// Memory that work put on `stream` from now on may use; other streams must wait for an event of it.
  /// @param bytes at least 0; 0 gives a null pointer.
  /// @throws RuntimeError with wanted and live bytes if the memory cannot be had.
  void* allocate(std::int64_t bytes, const Stream& stream = {});
  /// Gives the memory back once the work that `stream` holds now is done. Does not wait for it.
  void deallocate(void* pointer, std::int64_t bytes, const Stream& stream = {}) noexcept;

  /// Fills every block with 0xFF bytes before it is handed out: NaN in fp32, fp16, bf16, E4M3, E5M2
  /// and E8M0. Tests use it, so that an output that was never written cannot pass.
  void set_poison(bool poison) { poison_ = poison; }

  [[nodiscard]] AllocatorStats stats() const;
  /// Starts a new measurement of peak_bytes at the bytes that live now.
  void reset_peak();

 protected:
  virtual void* do_allocate(std::int64_t rounded_bytes, const Stream& stream,
                            bool* asked_system) = 0;
  virtual void do_deallocate(void* pointer, std::int64_t rounded_bytes,
                             const Stream& stream) noexcept = 0;

  [[nodiscard]] bool poison() const { return poison_; }

 private:
  bool poison_ = false;
  mutable std::mutex mutex_;
  AllocatorStats stats_;
};

/// Host memory, 64-byte aligned. Freed blocks are kept by size and handed out again, since a training
/// step asks for the same sizes each time and page faults would cost more than the arithmetic.
class HostAllocator : public Allocator {
 public:
  HostAllocator() = default;
  ~HostAllocator() override;
  HostAllocator(const HostAllocator&) = delete;
  HostAllocator& operator=(const HostAllocator&) = delete;

 protected:
  void* do_allocate(std::int64_t rounded_bytes, const Stream& stream, bool* asked_system) override;
  void do_deallocate(void* pointer, std::int64_t rounded_bytes,
                     const Stream& stream) noexcept override;

 private:
  std::map<std::int64_t, std::vector<void*>> free_blocks_;
};

/// Counts without having memory: pointers are unique but must never be read. Used to plan the memory of
/// a training step by running it on the meta device.
class CountingAllocator : public Allocator {
 protected:
  void* do_allocate(std::int64_t rounded_bytes, const Stream& stream, bool* asked_system) override;
  void do_deallocate(void* pointer, std::int64_t rounded_bytes,
                     const Stream& stream) noexcept override;

 private:
  std::uintptr_t next_ = 1;
};

/// One allocation. Move-only; frees in the destructor, after the work of the stream it was made for.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<Allocator> allocator, std::int64_t bytes, const Stream& stream = {});
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Stream stream_;
};

}  // namespace kitchen
