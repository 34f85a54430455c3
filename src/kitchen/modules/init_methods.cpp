#include "kitchen/modules/init_methods.h"

#include "kitchen/base/rng.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/init.h"
#include "kitchen/parallel/rng_tracker.h"

namespace kitchen {

namespace {

/// Each piece of the local tensor lies at a place of its own in the whole.
void draw_normal(const Tensor& tensor, const ShardInfo& shard, std::uint64_t key, double std) {
  if (shard.parts <= 1) {
    ops::normal_init(tensor, key, 0.0, std, shard.global_shape, shard.global_offset);
    return;
  }
  const std::int64_t rows = tensor.dim(0) / shard.parts;
  for (std::int64_t part = 0; part < shard.parts; ++part) {
    Shape offset = shard.global_offset;
    offset[0] += part * (shard.global_shape[0] / shard.parts);
    ops::normal_init(tensor.slice(0, part * rows, rows), key, 0.0, std, shard.global_shape, offset);
  }
}

}  // namespace

InitMethod init_method_normal(double std) {
  return [std](Tensor& tensor) {
    ShardInfo shard;
    if (tensor.shard()) {
      shard = *tensor.shard();
    } else {  // a tensor outside of any module: draw by its own index from the default generator
      shard.global_shape = tensor.shape();
      shard.global_offset.assign(tensor.shape().size(), 0);
      const Rng rng = next_rng();
      shard.logical_name = std::to_string(rng.seed) + "/" + std::to_string(rng.stream_id);
    }
    const std::uint64_t key = splitmix64(run_seed() ^ fnv1a64(shard.logical_name));
    draw_normal(tensor.detach(), shard, key, std);
  };
}

InitMethod init_method_constant(float value) {
  return [value](Tensor& tensor) { ops::fill_inplace(tensor.detach(), value); };
}

Parameter make_parameter(const ContextPtr& context, const Shape& shape, DType dtype,
                         const ParameterLayout& layout, const InitMethod& init) {
  Tensor tensor = Tensor::zeros(context, shape, dtype);
  ShardInfo shard{layout.logical_name, shape, Shape(shape.size(), 0)};
  if (layout.partition_dim >= 0) {
    const auto dim = static_cast<std::size_t>(layout.partition_dim);
    if (dim == 0 && shape[0] % layout.partition_stride == 0) shard.parts = layout.partition_stride;
    shard.global_offset[dim] = shape[dim] / shard.parts * layout.partition_rank;
    shard.global_shape[dim] = shape[dim] * layout.partition_size;
  }
  tensor.set_shard(std::move(shard));
  if (init) init(tensor);
  return Parameter(tensor);
}

}  // namespace kitchen
