#include "kitchen/autograd/view_functions.h"

#include "kitchen/autograd/function.h"
#include "kitchen/ops/elementwise.h"

#include <numeric>

namespace kitchen::autograd {

namespace {

struct NothingSaved {
  [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
};

struct ShapeSaved : NothingSaved {
  Shape shape;
};

struct Reshape : Function<Reshape> {
  using Saved = ShapeSaved;
  static constexpr const char* kName = "Reshape";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const Shape& shape,
                        bool needs_copy) {
    ctx.saved.shape = x.shape();
    return needs_copy ? ops::contiguous(x).view(shape) : x.view(shape);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    return {ops::contiguous(grads[0]).view(ctx.saved.shape)};
  }
};

struct Permute : Function<Permute> {
  struct Saved : NothingSaved {
    std::vector<int> order;
  };
  static constexpr const char* kName = "Permute";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const std::vector<int>& order) {
    ctx.saved.order = order;
    return x.permute(order);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    std::vector<int> inverse(ctx.saved.order.size());
    for (std::size_t i = 0; i < inverse.size(); ++i) {
      inverse[static_cast<std::size_t>(ctx.saved.order[i])] = static_cast<int>(i);
    }
    return {grads[0].permute(inverse)};
  }
};

struct Contiguous : Function<Contiguous> {
  using Saved = NothingSaved;
  static constexpr const char* kName = "Contiguous";

  static Tensor forward(FunctionContext<Saved>& /*ctx*/, const Tensor& x) {
    return ops::contiguous(x);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& /*ctx*/,
                                      const std::vector<Tensor>& grads) {
    return {grads[0]};
  }
};

struct Split : Function<Split> {
  struct Saved : NothingSaved {
    Shape shape;
    DType dtype = DType::float32;
    std::int64_t dim = 0;
    std::vector<std::int64_t> sizes;
    ContextPtr context;
  };
  static constexpr const char* kName = "Split";

  static std::vector<Tensor> forward(FunctionContext<Saved>& ctx, const Tensor& x, std::int64_t dim,
                                     const std::vector<std::int64_t>& sizes) {
    ctx.saved.shape = x.shape();
    ctx.saved.dtype = x.dtype();
    ctx.saved.dim = dim;
    ctx.saved.sizes = sizes;
    ctx.saved.context = x.context();
    std::vector<Tensor> pieces;
    std::int64_t start = 0;
    for (const std::int64_t size : sizes) {
      pieces.push_back(x.slice(dim, start, size));
      start += size;
    }
    return pieces;
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& saved = ctx.saved;
    const Tensor dx = Tensor::empty(saved.context, saved.shape, saved.dtype);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < grads.size(); ++i) {
      const Tensor piece = dx.slice(saved.dim, start, saved.sizes[i]);
      if (grads[i].defined()) {
        ops::copy_into(grads[i], piece);
      } else {
        ops::fill_inplace(piece, 0.0f);
      }
      start += saved.sizes[i];
    }
    return {dx};
  }
};

struct Concatenate : Function<Concatenate> {
  struct Saved : NothingSaved {
    std::int64_t dim = 0;
    std::vector<std::int64_t> sizes;
  };
  static constexpr const char* kName = "Concatenate";

  static Tensor forward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& pieces,
                        std::int64_t dim) {
    ctx.saved.dim = dim;
    Shape shape = pieces[0].shape();
    shape[static_cast<std::size_t>(dim)] = 0;
    for (const Tensor& piece : pieces) {
      ctx.saved.sizes.push_back(piece.dim(dim));
      shape[static_cast<std::size_t>(dim)] += piece.dim(dim);
    }
    const Tensor joined = Tensor::empty(pieces[0].context(), shape, pieces[0].dtype());
    std::int64_t start = 0;
    for (const Tensor& piece : pieces) {
      ops::copy_into(piece, joined.slice(dim, start, piece.dim(dim)));
      start += piece.dim(dim);
    }
    return joined;
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    std::vector<Tensor> pieces;
    std::int64_t start = 0;
    for (const std::int64_t size : ctx.saved.sizes) {
      pieces.push_back(grads[0].slice(ctx.saved.dim, start, size));
      start += size;
    }
    return pieces;
  }
};

/// x seen as [outer, n, inner]: dimension `dim` isolated.
Shape isolate(const Shape& shape, std::int64_t dim) {
  const auto axis = shape.begin() + dim;
  const auto product = [](auto first, auto last) {
    return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
  };
  return {product(shape.begin(), axis), *axis, product(axis + 1, shape.end())};
}

struct RepeatInterleave : Function<RepeatInterleave> {
  struct Saved : NothingSaved {
    Shape shape;
    std::int64_t dim = 0;
    std::int64_t repeats = 1;
  };
  static constexpr const char* kName = "RepeatInterleave";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, std::int64_t dim,
                        std::int64_t repeats) {
    ctx.saved.shape = x.shape();
    ctx.saved.dim = dim;
    ctx.saved.repeats = repeats;
    const Shape parts = isolate(x.shape(), dim);
    const Tensor source = ops::contiguous(x).view({parts[0] * parts[1], parts[2]});
    const Tensor out = Tensor::empty(x.context(), {parts[0] * parts[1], repeats, parts[2]}, x.dtype());
    for (std::int64_t r = 0; r < repeats; ++r) {
      ops::copy_into(source.view({parts[0] * parts[1], 1, parts[2]}), out.slice(1, r, 1));
    }
    Shape shape = x.shape();
    shape[static_cast<std::size_t>(dim)] *= repeats;
    return out.view(shape);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& saved = ctx.saved;
    const Shape parts = isolate(saved.shape, saved.dim);
    const std::int64_t rows = parts[0] * parts[1];
    const Tensor dy = ops::contiguous(grads[0]).view({rows, saved.repeats, parts[2]});
    // fp32 in ascending order of the repeats, one rounding at the end (numerics.md S7.1).
    const Tensor sum = Tensor::zeros(dy.context(), {rows, 1, parts[2]}, DType::float32);
    for (std::int64_t r = 0; r < saved.repeats; ++r) {
      ops::add_inplace(sum, ops::contiguous(dy.slice(1, r, 1)));
    }
    return {ops::cast(sum, dy.dtype()).view(saved.shape)};
  }
};

std::int64_t wrap(const Tensor& x, std::int64_t dim) { return dim < 0 ? dim + x.rank() : dim; }

}  // namespace

Tensor reshape(const Tensor& x, Shape shape) {
  bool needs_copy = false;
  try {
    (void)x.detach().view(shape);
  } catch (const ValueError&) {
    needs_copy = !x.is_contiguous();  // a wrong size throws again below, with its message
  }
  return Reshape::apply(x, shape, needs_copy);
}

Tensor transpose(const Tensor& x, std::int64_t a, std::int64_t b) {
  for (const std::int64_t dim : {a, b}) (void)x.dim(dim);  // refuses what is out of range
  std::vector<int> order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order.at(static_cast<std::size_t>(wrap(x, a))),
            order.at(static_cast<std::size_t>(wrap(x, b))));
  return Permute::apply(x, order);
}

Tensor permute(const Tensor& x, const std::vector<int>& order) { return Permute::apply(x, order); }

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : Contiguous::apply(x); }

std::vector<Tensor> split(const Tensor& x, std::int64_t dim, const std::vector<std::int64_t>& sizes) {
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (sum != x.dim(dim)) {
    throw ValueError("split: sizes sum to " + std::to_string(sum) + ", dimension " +
                     std::to_string(dim) + " of shape " + to_string(x.shape()) + " does not");
  }
  return Split::apply(x, wrap(x, dim), sizes);
}

Tensor concatenate(const std::vector<Tensor>& pieces, std::int64_t dim) {
  if (pieces.empty()) throw ValueError("concatenate: no pieces; give at least one");
  return Concatenate::apply(pieces, dim < 0 ? dim + pieces[0].rank() : dim);
}

Tensor repeat_interleave(const Tensor& x, std::int64_t dim, std::int64_t repeats) {
  if (repeats < 1) throw ValueError("repeat_interleave: repeats is " + std::to_string(repeats));
  (void)x.dim(dim);
  return repeats == 1 ? x : RepeatInterleave::apply(x, wrap(x, dim), repeats);
}

}  // namespace kitchen::autograd
