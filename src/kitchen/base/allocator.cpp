#include "kitchen/base/allocator.h"

#include "kitchen/base/error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace kitchen {

namespace {

std::int64_t round_up(std::int64_t bytes) {
  return (bytes + kAllocationGranularity - 1) / kAllocationGranularity * kAllocationGranularity;
}

}  // namespace

void* Allocator::allocate(std::int64_t bytes, const Stream& stream) {
  if (bytes < 0) throw ValueError("Allocator: negative size " + std::to_string(bytes));
  if (bytes == 0) return nullptr;
  const std::int64_t rounded = round_up(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  bool asked_system = false;
  void* pointer = do_allocate(rounded, stream, &asked_system);
  if (pointer == nullptr) {
    throw RuntimeError("Allocator: out of memory: wanted " + std::to_string(bytes) + " bytes while " +
                       std::to_string(stats_.live_bytes) +
                       " are in use. Use a smaller micro-batch, sequence or model.");
  }
  stats_.live_bytes += rounded;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  ++stats_.num_allocations;
  if (asked_system) ++stats_.num_system_allocations;
  return pointer;
}

void Allocator::deallocate(void* pointer, std::int64_t bytes, const Stream& stream) noexcept {
  if (pointer == nullptr) return;
  const std::int64_t rounded = round_up(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  do_deallocate(pointer, rounded, stream);
  stats_.live_bytes -= rounded;
}

AllocatorStats Allocator::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void Allocator::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.peak_bytes = stats_.live_bytes;
}

HostAllocator::~HostAllocator() {
  for (auto& [bytes, blocks] : free_blocks_) {
    for (void* block : blocks) std::free(block);
  }
}

void* HostAllocator::do_allocate(std::int64_t rounded_bytes, const Stream& /*stream*/,
                                 bool* asked_system) {
  void* pointer = nullptr;
  std::vector<void*>& blocks = free_blocks_[rounded_bytes];
  if (!blocks.empty()) {
    pointer = blocks.back();
    blocks.pop_back();
  } else {
    *asked_system = true;
    pointer = std::aligned_alloc(static_cast<std::size_t>(kAllocationGranularity),
                                 static_cast<std::size_t>(rounded_bytes));
    if (pointer == nullptr) {  // give back what only the cache holds, then try once more
      for (auto& [bytes, cached] : free_blocks_) {
        for (void* block : cached) std::free(block);
        cached.clear();
      }
      pointer = std::aligned_alloc(static_cast<std::size_t>(kAllocationGranularity),
                                   static_cast<std::size_t>(rounded_bytes));
    }
  }
  if (pointer != nullptr && poison()) {
    std::memset(pointer, 0xFF, static_cast<std::size_t>(rounded_bytes));
  }
  return pointer;
}

void HostAllocator::do_deallocate(void* pointer, std::int64_t rounded_bytes,
                                  const Stream& /*stream*/) noexcept {
  try {
    free_blocks_[rounded_bytes].push_back(pointer);
  } catch (const std::bad_alloc&) {
    std::free(pointer);
  }
}

void* CountingAllocator::do_allocate(std::int64_t rounded_bytes, const Stream& /*stream*/,
                                     bool* asked_system) {
  *asked_system = false;
  const std::uintptr_t address = next_ * static_cast<std::uintptr_t>(kAllocationGranularity);
  next_ += static_cast<std::uintptr_t>(rounded_bytes / kAllocationGranularity);
  return reinterpret_cast<void*>(address);
}

void CountingAllocator::do_deallocate(void* /*pointer*/, std::int64_t /*rounded_bytes*/,
                                      const Stream& /*stream*/) noexcept {}

Buffer::Buffer(std::shared_ptr<Allocator> allocator, std::int64_t bytes, const Stream& stream)
    : allocator_(std::move(allocator)),
      data_(allocator_->allocate(bytes, stream)),
      bytes_(bytes),
      stream_(stream) {}

Buffer::~Buffer() {
  if (allocator_) allocator_->deallocate(data_, bytes_, stream_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : allocator_(std::move(other.allocator_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      stream_(other.stream_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (allocator_) allocator_->deallocate(data_, bytes_, stream_);
    allocator_ = std::move(other.allocator_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    stream_ = other.stream_;
  }
  return *this;
}

}  // namespace kitchen
