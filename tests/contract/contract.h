#pragma once

#include "kitchen/backends/available_backends.h"
#include "kitchen/base/memory_kernels.h"
#include "kitchen/base/owned_stream.h"
#include "kitchen/base/tensor.h"
#include "kitchen/ops/init.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

/// @file  contract.h
/// @brief What tests of kernel contracts share: a backend as parameter, operands that start off
/// their
///        alignment between guard bytes, and a stream of their own.
///
/// The oracle is the reference backend on plain tensors, which has tests of independent origin. Run
/// for the reference backend itself, a test shows that placement does not matter.

namespace kitchen::testing {

class BackendContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const AvailableBackend& backend : available_backends()) {
      if (backend.name != GetParam()) continue;
      const std::string reason = backend.why_unusable();
      if (!reason.empty()) GTEST_SKIP() << "no " << backend.name << " device: " << reason;
      context_ = backend.make_context(0);
      context_->allocator()->set_poison(true);
    }
    ASSERT_NE(context_, nullptr) << "no backend " << GetParam();
  }

  /// Runs `work`, which launches on context(), on a fresh stream, and waits for it.
  template <class Work>
  void on_fresh_stream(const Work& work) {
    synchronize(*context_);
    const OwnedStream stream(context_);
    const StreamGuard guard(*context_, stream.get());
    work();
    synchronize(*context_);
  }

  [[nodiscard]] const ContextPtr& context() const { return context_; }
  [[nodiscard]] const ContextPtr& cpu() const { return cpu_; }

 private:
  ContextPtr context_;
  ContextPtr cpu_ = reference::make_cpu_context();
};

inline std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const AvailableBackend& backend : available_backends()) names.push_back(backend.name);
  return names;
}

inline std::string name_of_backend(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

/// A dense tensor between guard elements in fresh, poisoned memory. It starts `misalignment`
/// elements after a 16-byte boundary.
class Guarded {
 public:
  Guarded(const ContextPtr& context, const Shape& shape, DType dtype, std::int64_t misalignment)
      : first_(kGuard + misalignment),
        count_(num_elements(shape)),
        whole_(Tensor::empty(context, {first_ + count_ + kGuard}, dtype)),
        tensor_(whole_.as_strided(shape, contiguous_strides(shape), first_)) {}

  [[nodiscard]] const Tensor& tensor() const { return tensor_; }
  [[nodiscard]] View view() const { return tensor_.kernel_view(); }

  [[nodiscard]] ::testing::AssertionResult guards_are_intact() const {
    const Tensor host = whole_.to(reference::make_cpu_context());
    const auto* bytes = static_cast<const std::uint8_t*>(host.raw_data());
    const std::int64_t size = size_of(whole_.dtype());
    const auto is_poison = [](std::uint8_t byte) { return byte == 0xFF; };
    if (!std::all_of(bytes, bytes + first_ * size, is_poison)) {
      return ::testing::AssertionFailure() << "written before the first element";
    }
    if (!std::all_of(bytes + (first_ + count_) * size, bytes + host.nbytes(), is_poison)) {
      return ::testing::AssertionFailure() << "written beyond the last element";
    }
    return ::testing::AssertionSuccess();
  }

  /// The guards are intact and the elements have the bits of `expected`, which lies in host memory.
  [[nodiscard]] ::testing::AssertionResult holds(const Tensor& expected) const {
    const ::testing::AssertionResult guards = guards_are_intact();
    return guards ? same_bits(expected, tensor_.to(expected.context())) : guards;
  }

 private:
  static constexpr std::int64_t kGuard = 64;

  std::int64_t first_;
  std::int64_t count_;
  Tensor whole_;
  Tensor tensor_;
};

/// `host` copied to a place off its alignment in the memory of `context`.
inline Guarded placed(const ContextPtr& context, const Tensor& host, std::int64_t misalignment) {
  Guarded copy(context, host.shape(), host.dtype(), misalignment);
  context->launch<CopyFromHostKernel>({}, copy.tensor().raw_data(), host.raw_data(), host.nbytes());
  return copy;
}

/// Normal numbers of deviation 2, with both zeros, a subnormal and a large value among them. All
/// are finite.
inline Tensor sample(const ContextPtr& cpu, const Shape& shape, DType dtype, std::uint64_t key) {
  const Tensor x = Tensor::empty(cpu, shape, dtype);
  if (x.numel() == 0) return x;
  ops::normal_init(x, key, 0.0, 2.0, shape, Shape(shape.size(), 0));
  const std::int64_t last = x.numel() - 1;
  const auto put = [&](std::int64_t at, std::uint32_t word, std::uint16_t half) {
    if (dtype == DType::float32) {
      const auto bits = static_cast<std::int32_t>(word);
      std::copy_n(reinterpret_cast<const std::uint8_t*>(&bits), 4,
                  static_cast<std::uint8_t*>(x.raw_data()) + 4 * at);
    } else {
      x.data<std::uint16_t>()[at] = half;
    }
  };
  put(last / 2, 0x80000000u, 0x8000);
  put(last / 3, 0x00000001u, 0x0001);
  put(last / 5, 0x00000000u, 0x0000);
  put(last, 0x44800000u, dtype == DType::bfloat16 ? 0x4480 : 0x6400);  // 1024
  return x;
}

/// Sets element `at` to a NaN with a payload.
inline void put_nan(const Tensor& x, std::int64_t at) {
  if (x.dtype() == DType::float32) {
    const std::uint32_t bits = 0xFFC12345u;
    std::copy_n(reinterpret_cast<const std::uint8_t*>(&bits), 4,
                static_cast<std::uint8_t*>(x.raw_data()) + 4 * at);
  } else {
    x.data<std::uint16_t>()[at] = 0xFFC1;
  }
}

inline constexpr DType kHighPrecision[] = {DType::float32, DType::bfloat16, DType::float16};

}  // namespace kitchen::testing
