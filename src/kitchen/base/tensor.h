#pragma once

#include "kitchen/base/context.h"
#include "kitchen/base/dtype.h"
#include "kitchen/base/tensor_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kitchen {

using Shape = std::vector<std::int64_t>;

/// "[2, 3]".
std::string to_string(const Shape& shape);

/// Product of the sizes; 1 for the empty shape.
std::int64_t num_elements(const Shape& shape);

/// What the autograd room hangs on a tensor. `base` only needs to know whether the tensor takes part.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
  [[nodiscard]] virtual bool requires_grad() const = 0;
};

/// Where a tensor lies inside the logical tensor that all ranks hold together, and that tensor's name.
/// Read by the init methods, so that every split draws the same weights.
struct ShardInfo {
  std::string logical_name;
  Shape global_shape;
  Shape global_offset;
  /// The local tensor is this many equal pieces of dimension 0 (a gated weight is [gate; up]); piece p starts at
  /// row global_offset[0] + p·global_shape[0] / parts of the logical tensor.
  std::int64_t parts = 1;
};

/// A strided view of a buffer, with value semantics of a handle: copies share storage and autograd state.
///
/// Sizes are int64; any size may be 0. Strides count elements. A default-constructed tensor is
/// *undefined* and stands for "none".
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised contiguous tensor. @throws ValueError on a negative size.
  static Tensor empty(const ContextPtr& context, Shape shape, DType dtype);
  /// All bytes zero, which is the value 0 in every dtype but float8_e8m0.
  static Tensor zeros(const ContextPtr& context, Shape shape, DType dtype);
  /// Copies host values of T (float, int32_t, int64_t, uint8_t) into a tensor of the matching dtype.
  template <class T>
  static Tensor from_vector(const ContextPtr& context, Shape shape, const std::vector<T>& values);

  [[nodiscard]] bool defined() const { return impl_ != nullptr; }
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] const Shape& strides() const;
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] std::int64_t rank() const { return static_cast<std::int64_t>(shape().size()); }
  /// Size of dimension `dim`; negative counts from the end. @throws ValueError out of range.
  [[nodiscard]] std::int64_t dim(std::int64_t dim) const;
  [[nodiscard]] std::int64_t numel() const;
  /// Bytes of numel() elements (not of the storage).
  [[nodiscard]] std::int64_t nbytes() const { return numel() * size_of(dtype()); }
  [[nodiscard]] const ContextPtr& context() const;
  [[nodiscard]] const Device& device() const { return context()->device(); }
  [[nodiscard]] bool is_contiguous() const;
  /// True if both handles see the same storage object (aliasing is possible).
  [[nodiscard]] bool shares_storage_with(const Tensor& other) const;

  /// First element. Must not be dereferenced on the meta device.
  [[nodiscard]] void* raw_data() const;
  /// As raw_data with the C++ type of the dtype. @throws TypeError if T does not fit the dtype.
  template <class T>
  [[nodiscard]] T* data() const;

  /// Same elements in another shape; one size may be -1. @throws ValueError if sizes or strides do not
  /// allow it without a copy. These raw view methods know nothing of gradients: on a tensor that requires
  /// grad they throw RuntimeError, since they would cut the graph silently (use autograd::view ...).
  [[nodiscard]] Tensor view(Shape shape) const;
  [[nodiscard]] Tensor transpose(std::int64_t a, std::int64_t b) const;
  [[nodiscard]] Tensor permute(const std::vector<int>& order) const;
  /// Elements [start, start + length) of dimension `dim`.
  [[nodiscard]] Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  /// Element `index` of dimension 0, which disappears.
  [[nodiscard]] Tensor select(std::int64_t index) const;
  /// A handle of the same storage without autograd state.
  [[nodiscard]] Tensor detach() const;
  /// A detached view with explicit shape, strides and storage offset (in elements), for tests and kernels.
  [[nodiscard]] Tensor as_strided(Shape shape, Shape strides, std::int64_t offset) const;

  /// A contiguous copy in the memory of `target`; this tensor itself (detached) if it lies there already.
  /// Goes through host memory and returns when the bytes have left it. @throws ValueError for meta to real.
  [[nodiscard]] Tensor to(const ContextPtr& target) const;
  /// Host copy of all elements in row-major order. @throws TypeError if T does not fit the dtype.
  template <class T>
  [[nodiscard]] std::vector<T> to_vector() const;

  [[nodiscard]] View kernel_view() const;
  [[nodiscard]] ConstView const_view() const { return kernel_view(); }

  [[nodiscard]] bool requires_grad() const;
  [[nodiscard]] const std::shared_ptr<AutogradMeta>& autograd_meta() const;
  void set_autograd_meta(std::shared_ptr<AutogradMeta> meta) const;

  [[nodiscard]] const std::optional<ShardInfo>& shard() const;
  void set_shard(ShardInfo shard) const;

  /// Makes this handle's storage, shape and strides those of `other`, for every copy of the handle.
  /// Keeps autograd state. Used to materialise meta parameters and to load checkpoints.
  void set_data(const Tensor& other) const;

  /// Counts in-place changes (optimizer, load): caches compare it.
  [[nodiscard]] std::int64_t version() const;
  void bump_version() const;

  /// Identity of the handle: equal for copies of one handle.
  [[nodiscard]] const void* id() const { return impl_.get(); }

 private:
  struct Impl;
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  [[nodiscard]] Impl& impl() const;
  [[nodiscard]] Tensor raw_view(Shape shape, Shape strides, std::int64_t offset_elements) const;

  std::shared_ptr<Impl> impl_;
};

/// Row-major strides of a contiguous tensor.
Shape contiguous_strides(const Shape& shape);

/// The common Context of the operands of `op`. Undefined tensors are skipped.
/// @throws ValueError naming `op` and both devices if they differ, or if no tensor is defined.
const ContextPtr& common_context(const char* op, std::initializer_list<const Tensor*> tensors);

}  // namespace kitchen
