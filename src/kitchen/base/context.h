#pragma once

#include "kitchen/base/allocator.h"
#include "kitchen/base/backend.h"
#include "kitchen/base/device.h"
#include "kitchen/base/op_timer.h"
#include "kitchen/base/stream.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <utility>

namespace kitchen {

class RankState;

/// Device, stream, allocator and kernel table of one rank. Every tensor knows its Context, so the
/// documented calls need no extra argument. Not copyable; shared by pointer.
class Context {
 public:
  /// @param backend Kernel table; for the meta device the table of the device that is planned for.
  /// @param stream  Where ops run outside of a StreamGuard. Not owned: it outlives the Context.
  Context(Device device, std::shared_ptr<const Backend> backend,
          std::shared_ptr<Allocator> allocator, Stream stream = {});

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] bool is_meta() const { return device_.type == DeviceType::meta; }
  [[nodiscard]] const Backend& backend() const { return *backend_; }
  [[nodiscard]] const std::shared_ptr<const Backend>& backend_ptr() const { return backend_; }
  [[nodiscard]] const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  [[nodiscard]] const Stream& stream() const { return stream_; }

  /// Makes `variant` the kernel that `launch<K>` takes when it is asked for none.
  template <class K>
  void set_variant(std::string variant) {
    variants_[std::type_index(typeid(K))] = std::move(variant);
  }

  /// The variant that launch<K> takes when it is asked for `asked`: the one of set_variant if `asked` is
  /// empty; an empty result means the backend's default.
  template <class K>
  [[nodiscard]] std::string variant_for(std::string_view asked = {}) const {
    return std::string(asked.empty() ? preferred(std::type_index(typeid(K))) : asked);
  }

  /// Runs the kernel of op K on this context's stream. The one place through which every op goes:
  /// times it when a timer is attached, and does nothing on the meta device, where only shapes and
  /// allocations exist.
  template <class K, class... Args>
  void launch(std::string_view variant, Args&&... args) const {
    const auto fn = backend_->get<K>(variant.empty() ? preferred(std::type_index(typeid(K))) : variant);
    if (is_meta()) return;
    const RunningOp running(running_op_, K::kName);
    if (timer_ == nullptr) {
      fn(stream_, std::forward<Args>(args)...);
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    fn(stream_, std::forward<Args>(args)...);
    timer_->record(K::kName,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  /// Name of the op that runs now, null between ops. Any thread may ask: a watchdog does, about a rank that
  /// hangs.
  [[nodiscard]] const char* running_op() const {
    return running_op_.load(std::memory_order_relaxed);
  }

  /// Attaches a timer, or detaches it with null. Not owned.
  void set_op_timer(OpTimer* timer) { timer_ = timer; }
  [[nodiscard]] OpTimer* op_timer() const { return timer_; }

 private:
  friend class StreamGuard;

  /// Notes an op for its lifetime.
  class RunningOp {
   public:
    RunningOp(std::atomic<const char*>& note, const char* name) : note_(note) {
      note_.store(name, std::memory_order_relaxed);
    }
    ~RunningOp() { note_.store(nullptr, std::memory_order_relaxed); }
    RunningOp(const RunningOp&) = delete;
    RunningOp& operator=(const RunningOp&) = delete;

   private:
    std::atomic<const char*>& note_;
  };

  [[nodiscard]] std::string_view preferred(std::type_index op) const;

  Device device_;
  Stream stream_;
  std::shared_ptr<const Backend> backend_;
  std::shared_ptr<Allocator> allocator_;
  std::unordered_map<std::type_index, std::string> variants_;
  OpTimer* timer_ = nullptr;
  mutable std::atomic<const char*> running_op_{nullptr};  // launch does not change what the context is
};

using ContextPtr = std::shared_ptr<Context>;

/// A context on the meta device that counts allocations of the ops of `planned_for` without doing them.
ContextPtr make_meta_context(const Context& planned_for);

/// Makes ops of `context` run on `stream`, and tensors live on it, for the lifetime of the guard.
/// Ordering against other streams is the caller's: wait before the guard, and before it is undone.
class StreamGuard {
 public:
  StreamGuard(Context& context, Stream stream)
      : context_(context), former_(std::exchange(context.stream_, stream)) {}
  ~StreamGuard() { context_.stream_ = former_; }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Context& context_;
  Stream former_;
};

/// The default context of the calling thread's rank.
/// @throws RuntimeError if none was set (set_default_context).
ContextPtr default_context();

/// Sets the context that tensors without another one are created in, for this rank.
void set_default_context(ContextPtr context);

}  // namespace kitchen
