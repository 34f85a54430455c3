#include "kitchen/parallel/rank_order_reduction.h"

#include "kitchen/base/error.h"
#include "kitchen/formats/codec.h"

#include <type_traits>

namespace kitchen::parallel {

namespace {

/// Element in memory, value that arithmetic uses, and the way between them.
template <class T>
struct Plain {
  using Storage = T;
  using Value = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
struct Bfloat16 {
  using Storage = std::uint16_t;
  using Value = float;
  static float load(std::uint16_t x) { return formats::bf16_to_float(x); }
  static std::uint16_t store(float x) { return formats::float_to_bf16(x); }
};
struct Half {
  using Storage = std::uint16_t;
  using Value = float;
  static float load(std::uint16_t x) { return formats::fp16_to_float(x); }
  static std::uint16_t store(float x) { return formats::float_to_fp16(x); }
};

template <class Value>
Value larger(Value a, Value b) {
  if constexpr (std::is_floating_point_v<Value>) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return a < b ? b : a;
}

template <class Io>
void reduce(ReduceOp op, const std::vector<const void*>& inputs, void* out, std::int64_t count) {
  using Value = typename Io::Value;
  const auto at = [&](std::size_t rank, std::int64_t i) {
    return Io::load(static_cast<const typename Io::Storage*>(inputs[rank])[i]);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    Value value = at(0, i);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      const Value other = at(rank, i);
      value = op == ReduceOp::max ? larger(value, other) : static_cast<Value>(value + other);
    }
    if constexpr (std::is_floating_point_v<Value>) {
      if (op == ReduceOp::avg) value /= static_cast<Value>(inputs.size());
    }
    static_cast<typename Io::Storage*>(out)[i] = Io::store(value);
  }
}

/// Calls body with the Io of `dtype`; false if there is none.
template <class Body>
bool with_reducible(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::float32:
      body(Plain<float>{});
      return true;
    case DType::bfloat16:
      body(Bfloat16{});
      return true;
    case DType::float16:
      body(Half{});
      return true;
    case DType::int32:
      body(Plain<std::int32_t>{});
      return true;
    case DType::int64:
      body(Plain<std::int64_t>{});
      return true;
    case DType::uint8:
      body(Plain<std::uint8_t>{});
      return true;
    default:
      return false;
  }
}

}  // namespace

void require_reducible(DType dtype, ReduceOp op) {
  if (!with_reducible(dtype, [](auto) {})) {
    throw NotImplementedError("a reduction over ranks of dtype " + to_string(dtype) +
                              "; float32, bfloat16, float16, int32, int64 and uint8 are supported");
  }
  if (op == ReduceOp::avg && !is_high_precision(dtype)) {
    throw NotImplementedError("an average over ranks of dtype " + to_string(dtype) +
                              "; use sum and divide");
  }
}

void reduce_in_rank_order(DType dtype, ReduceOp op, const std::vector<const void*>& inputs,
                          void* out, std::int64_t count) {
  require_reducible(dtype, op);
  with_reducible(dtype, [&](auto io) { reduce<decltype(io)>(op, inputs, out, count); });
}

}  // namespace kitchen::parallel
