#include "kitchen/formats/quantized_matrix.h"

#include "kitchen/base/error.h"

namespace kitchen {

namespace {

std::int64_t num_blocks(std::int64_t size, std::int64_t block) {
  return block == 0 ? 1 : (size + block - 1) / block;
}

void require_matrix(const Shape& shape) {
  if (shape.size() >= 2) return;
  throw ValueError("QuantizedMatrix: shape " + to_string(shape) +
                   " has fewer than two dimensions; view it as [rows, cols]");
}

}  // namespace

std::int64_t QuantizedMatrix::nbytes() const {
  std::int64_t bytes = codes.nbytes() + scale_inv.nbytes();
  if (amax.defined()) bytes += amax.nbytes();
  return bytes;
}

std::int64_t num_slices(const Shape& shape) {
  require_matrix(shape);
  return num_elements(Shape(shape.begin(), shape.end() - 2));
}

Shape code_shape(const QuantizeSpec& spec, const Shape& shape) {
  require_matrix(shape);
  Shape result = shape;
  if (spec.hadamard) result.back() = num_blocks(shape.back(), 16) * 16;
  return result;
}

Shape scale_shape(const QuantizeSpec& spec, const Shape& shape) {
  require_matrix(shape);
  Shape result = shape;
  const std::size_t last = shape.size() - 1;
  result[last - 1] = num_blocks(shape[last - 1], spec.stored_scale_rows());
  result[last] = num_blocks(shape[last], spec.granularity.cols);
  return result;
}

}  // namespace kitchen
