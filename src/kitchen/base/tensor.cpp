#include "kitchen/base/tensor.h"

#include "kitchen/base/error.h"
#include "kitchen/base/memory_kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kitchen {

struct Tensor::Impl {
  ContextPtr context;
  std::shared_ptr<Buffer> storage;
  std::int64_t offset = 0;  // elements
  Shape shape;
  Shape strides;
  DType dtype = DType::float32;
  std::shared_ptr<AutogradMeta> meta;
  std::optional<ShardInfo> shard;
  std::int64_t version = 0;
};

namespace {

/// dtypes whose elements a C++ type T can hold in memory.
template <class T>
bool fits(DType dtype);
template <>
bool fits<float>(DType dtype) { return dtype == DType::float32; }
template <>
bool fits<std::int32_t>(DType dtype) { return dtype == DType::int32; }
template <>
bool fits<std::int64_t>(DType dtype) { return dtype == DType::int64; }
template <>
bool fits<std::uint16_t>(DType dtype) {
  return dtype == DType::bfloat16 || dtype == DType::float16;
}
template <>
bool fits<std::uint8_t>(DType dtype) { return size_of(dtype) == 1; }

template <class T>
DType dtype_of();
template <>
DType dtype_of<float>() { return DType::float32; }
template <>
DType dtype_of<std::int32_t>() { return DType::int32; }
template <>
DType dtype_of<std::int64_t>() { return DType::int64; }
template <>
DType dtype_of<std::uint8_t>() { return DType::uint8; }

std::int64_t wrap_dim(std::int64_t dim, std::int64_t rank) {
  if (dim < -rank || dim >= rank) {
    throw ValueError("Tensor: dimension " + std::to_string(dim) + " of a tensor of rank " +
                     std::to_string(rank));
  }
  return dim < 0 ? dim + rank : dim;
}

/// Strides that give `shape` to the elements of (old_shape, old_strides) without a copy, if any.
std::optional<Shape> view_strides(const Shape& old_shape, const Shape& old_strides,
                                  const Shape& shape) {
  if (num_elements(old_shape) == 0) return contiguous_strides(shape);
  // Merge old dimensions into runs of constant stride, then cut the runs into the new dimensions.
  Shape run_size;
  Shape run_stride;
  for (std::size_t i = 0; i < old_shape.size(); ++i) {
    if (old_shape[i] == 1) continue;
    if (!run_size.empty() && run_stride.back() == old_shape[i] * old_strides[i]) {
      run_size.back() *= old_shape[i];
      run_stride.back() = old_strides[i];
    } else {
      run_size.push_back(old_shape[i]);
      run_stride.push_back(old_strides[i]);
    }
  }
  Shape strides(shape.size(), 1);
  std::size_t run = run_size.size();
  std::int64_t left = 1;
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (left == 1) {
      if (run == 0) return std::nullopt;
      --run;
      left = run_size[run];
      stride = run_stride[run];
    }
    if (left % shape[i] != 0) return std::nullopt;
    strides[i] = stride;
    stride *= shape[i];
    left /= shape[i];
  }
  if (left != 1 || run != 0) return std::nullopt;
  return strides;
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::int64_t num_elements(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Tensor Tensor::empty(const ContextPtr& context, Shape shape, DType dtype) {
  if (!context) throw ValueError("Tensor::empty: context is null");
  if (shape.size() > static_cast<std::size_t>(kMaxRank)) {
    throw ValueError("Tensor::empty: rank " + std::to_string(shape.size()) + " is above " +
                     std::to_string(kMaxRank));
  }
  for (const std::int64_t size : shape) {
    if (size < 0) throw ValueError("Tensor::empty: negative size in shape " + to_string(shape));
  }
  auto impl = std::make_shared<Impl>();
  impl->context = context;
  impl->storage =
      std::make_shared<Buffer>(context->allocator(), num_elements(shape) * size_of(dtype),
                               context->stream());
  impl->strides = contiguous_strides(shape);
  impl->shape = std::move(shape);
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor Tensor::zeros(const ContextPtr& context, Shape shape, DType dtype) {
  Tensor tensor = empty(context, std::move(shape), dtype);
  context->launch<FillBytesKernel>({}, tensor.raw_data(), 0, tensor.nbytes());
  return tensor;
}

template <class T>
Tensor Tensor::from_vector(const ContextPtr& context, Shape shape, const std::vector<T>& values) {
  if (num_elements(shape) != static_cast<std::int64_t>(values.size())) {
    throw ValueError("Tensor::from_vector: shape " + to_string(shape) + " wants " +
                     std::to_string(num_elements(shape)) + " values, got " +
                     std::to_string(values.size()));
  }
  Tensor tensor = empty(context, std::move(shape), dtype_of<T>());
  context->launch<CopyFromHostKernel>({}, tensor.raw_data(), values.data(), tensor.nbytes());
  return tensor;
}

Tensor::Impl& Tensor::impl() const {
  if (!impl_) throw ValueError("Tensor: used while undefined");
  return *impl_;
}

const Shape& Tensor::shape() const { return impl().shape; }
const Shape& Tensor::strides() const { return impl().strides; }
DType Tensor::dtype() const { return impl().dtype; }
std::int64_t Tensor::numel() const { return num_elements(impl().shape); }
const ContextPtr& Tensor::context() const { return impl().context; }

std::int64_t Tensor::dim(std::int64_t dim) const {
  return shape()[static_cast<std::size_t>(wrap_dim(dim, rank()))];
}

bool Tensor::is_contiguous() const {
  const Impl& self = impl();
  std::int64_t expected = 1;
  for (std::size_t i = self.shape.size(); i-- > 0;) {
    if (self.shape[i] == 0) return true;
    if (self.shape[i] == 1) continue;
    if (self.strides[i] != expected) return false;
    expected *= self.shape[i];
  }
  return true;
}

bool Tensor::shares_storage_with(const Tensor& other) const {
  return defined() && other.defined() && impl_->storage == other.impl_->storage;
}

void* Tensor::raw_data() const {
  const Impl& self = impl();
  return static_cast<std::uint8_t*>(self.storage->data()) + self.offset * size_of(self.dtype);
}

template <class T>
T* Tensor::data() const {
  if (!fits<T>(dtype())) {
    throw TypeError("Tensor::data: the tensor's dtype is " + to_string(dtype()) +
                    ", which the asked C++ type does not hold");
  }
  return static_cast<T*>(raw_data());
}

Tensor Tensor::raw_view(Shape shape, Shape strides, std::int64_t offset_elements) const {
  if (requires_grad()) {
    throw RuntimeError(
        "Tensor: a raw view of a tensor that requires grad would cut the graph; use the function of "
        "the same name in kitchen::autograd, or detach() first");
  }
  auto view = std::make_shared<Impl>();
  view->context = impl_->context;
  view->storage = impl_->storage;
  view->offset = impl_->offset + offset_elements;
  view->shape = std::move(shape);
  view->strides = std::move(strides);
  view->dtype = impl_->dtype;
  return Tensor(std::move(view));
}

Tensor Tensor::view(Shape shape) const {
  const Impl& self = impl();
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && !open) {
      open = i;
    } else {
      known *= shape[i];
    }
  }
  if (open && known > 0) shape[*open] = numel() / known;
  if (open && known == 0) shape[*open] = 0;
  if (num_elements(shape) != numel()) {
    throw ValueError("Tensor::view: shape " + to_string(self.shape) + " cannot become " +
                     to_string(shape));
  }
  std::optional<Shape> strides = view_strides(self.shape, self.strides, shape);
  if (!strides) {
    throw ValueError("Tensor::view: shape " + to_string(self.shape) + " with strides " +
                     to_string(self.strides) + " cannot become " + to_string(shape) +
                     " without a copy; make it contiguous first");
  }
  return raw_view(std::move(shape), std::move(*strides), 0);
}

Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  Shape shape = impl().shape;
  Shape strides = impl().strides;
  const auto i = static_cast<std::size_t>(wrap_dim(a, rank()));
  const auto j = static_cast<std::size_t>(wrap_dim(b, rank()));
  std::swap(shape[i], shape[j]);
  std::swap(strides[i], strides[j]);
  return raw_view(std::move(shape), std::move(strides), 0);
}

Tensor Tensor::permute(const std::vector<int>& order) const {
  const Impl& self = impl();
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (order.size() != self.shape.size() || sorted[i] != static_cast<int>(i)) {
      throw ValueError("Tensor::permute: the order is no permutation of " +
                       std::to_string(self.shape.size()) + " dimensions");
    }
  }
  Shape shape;
  Shape strides;
  for (const int dim : order) {
    shape.push_back(self.shape[static_cast<std::size_t>(dim)]);
    strides.push_back(self.strides[static_cast<std::size_t>(dim)]);
  }
  return raw_view(std::move(shape), std::move(strides), 0);
}

Tensor Tensor::slice(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  const auto axis = static_cast<std::size_t>(wrap_dim(dim, rank()));
  Shape shape = impl().shape;
  if (start < 0 || length < 0 || start + length > shape[axis]) {
    throw ValueError("Tensor::slice: [" + std::to_string(start) + ", " +
                     std::to_string(start + length) + ") is outside of dimension " +
                     std::to_string(dim) + " of shape " + to_string(shape));
  }
  shape[axis] = length;
  return raw_view(std::move(shape), impl().strides, start * impl().strides[axis]);
}

Tensor Tensor::select(std::int64_t index) const {
  const Tensor part = slice(0, index, 1);
  Shape shape(part.shape().begin() + 1, part.shape().end());
  Shape strides(part.strides().begin() + 1, part.strides().end());
  return part.raw_view(std::move(shape), std::move(strides), 0);
}

Tensor Tensor::detach() const {
  auto handle = std::make_shared<Impl>(impl());
  handle->meta = nullptr;
  return Tensor(std::move(handle));
}

Tensor Tensor::as_strided(Shape shape, Shape strides, std::int64_t offset) const {
  Tensor handle = detach();
  handle.impl_->shape = std::move(shape);
  handle.impl_->strides = std::move(strides);
  handle.impl_->offset = offset;
  return handle;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  if (!fits<T>(dtype())) {
    throw TypeError("Tensor::to_vector: the tensor's dtype is " + to_string(dtype()) +
                    ", which the asked C++ type does not hold");
  }
  if (context()->is_meta()) throw ValueError("Tensor::to_vector: a meta tensor holds no values");
  Tensor source = detach();
  if (!source.is_contiguous()) {
    Tensor packed = empty(context(), shape(), dtype());
    context()->launch<CopyStridedKernel>({}, source.const_view(), packed.kernel_view());
    source = packed;
  }
  std::vector<T> values(static_cast<std::size_t>(numel()));
  context()->launch<CopyToHostKernel>({}, values.data(), source.raw_data(), source.nbytes());
  return values;
}

Tensor Tensor::to(const ContextPtr& target) const {
  if (!target) throw ValueError("Tensor::to: context is null");
  if (target == context()) return detach();
  const Tensor copy = empty(target, shape(), dtype());
  if (target->is_meta()) return copy;
  if (context()->is_meta()) throw ValueError("Tensor::to: a meta tensor holds no values");
  Tensor source = detach();
  if (!source.is_contiguous()) {
    source = empty(context(), shape(), dtype());
    context()->launch<CopyStridedKernel>({}, const_view(), source.kernel_view());
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(nbytes()));
  context()->launch<CopyToHostKernel>({}, bytes.data(), source.raw_data(), nbytes());
  target->launch<CopyFromHostKernel>({}, copy.raw_data(), bytes.data(), nbytes());
  return copy;
}

View Tensor::kernel_view() const {
  const Impl& self = impl();
  View view;
  view.data = raw_data();
  view.dtype = self.dtype;
  view.rank = static_cast<int>(self.shape.size());
  std::copy(self.shape.begin(), self.shape.end(), view.shape.begin());
  std::copy(self.strides.begin(), self.strides.end(), view.strides.begin());
  return view;
}

bool Tensor::requires_grad() const { return impl_ && impl_->meta && impl_->meta->requires_grad(); }

const std::shared_ptr<AutogradMeta>& Tensor::autograd_meta() const { return impl().meta; }

void Tensor::set_autograd_meta(std::shared_ptr<AutogradMeta> meta) const {
  impl().meta = std::move(meta);
}

const std::optional<ShardInfo>& Tensor::shard() const { return impl().shard; }

void Tensor::set_shard(ShardInfo shard) const { impl().shard = std::move(shard); }

void Tensor::set_data(const Tensor& other) const {
  Impl& self = impl();
  const Impl& source = other.impl();
  self.context = source.context;
  self.storage = source.storage;
  self.offset = source.offset;
  self.shape = source.shape;
  self.strides = source.strides;
  self.dtype = source.dtype;
  ++self.version;
}

std::int64_t Tensor::version() const { return impl().version; }

void Tensor::bump_version() const { ++impl().version; }

const ContextPtr& common_context(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* tensor : tensors) {
    if (tensor == nullptr || !tensor->defined()) continue;
    if (first == nullptr) {
      first = tensor;
    } else if (tensor->context() != first->context()) {
      throw ValueError(std::string(op) + ": operands lie on different contexts, " +
                       to_string(first->device()) + " and " + to_string(tensor->device()) +
                       "; move them to one first");
    }
  }
  if (first == nullptr) throw ValueError(std::string(op) + ": no operand is defined");
  return first->context();
}

template Tensor Tensor::from_vector(const ContextPtr&, Shape, const std::vector<float>&);
template Tensor Tensor::from_vector(const ContextPtr&, Shape, const std::vector<std::int32_t>&);
template Tensor Tensor::from_vector(const ContextPtr&, Shape, const std::vector<std::int64_t>&);
template Tensor Tensor::from_vector(const ContextPtr&, Shape, const std::vector<std::uint8_t>&);
template float* Tensor::data<float>() const;
template std::int32_t* Tensor::data<std::int32_t>() const;
template std::int64_t* Tensor::data<std::int64_t>() const;
template std::uint16_t* Tensor::data<std::uint16_t>() const;
template std::uint8_t* Tensor::data<std::uint8_t>() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<std::int32_t> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<std::uint16_t> Tensor::to_vector() const;
template std::vector<std::uint8_t> Tensor::to_vector() const;

}  // namespace kitchen
