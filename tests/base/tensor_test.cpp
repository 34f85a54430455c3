#include "kitchen/base/error.h"
#include "kitchen/base/tensor.h"
#include "kitchen/reference/cpu_backend.h"

#include <gtest/gtest.h>

#include <numeric>

namespace kitchen {
namespace {

Tensor iota(const ContextPtr& context, Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from_vector(context, std::move(shape), values);
}

// labels: base.Tensor G13
TEST(Tensor, StridedViewsReadTheSameElements) {
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = iota(context, {2, 3, 4});
  const Tensor y = x.transpose(0, 2);  // [4, 3, 2]
  EXPECT_EQ(y.shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(y.strides(), (Shape{1, 4, 12}));
  const std::vector<float> values = y.to_vector<float>();
  EXPECT_EQ(values[1], 12.0f);
  EXPECT_EQ(values[2], 4.0f);
  EXPECT_EQ(x.slice(1, 1, 2).to_vector<float>(),
            (std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(x.select(1).view({12}).to_vector<float>().front(), 12.0f);
  EXPECT_EQ(x.permute({2, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_TRUE(x.view({6, -1}).shares_storage_with(x));
}

// labels: base.Tensor G13
TEST(Tensor, ViewThatNeedsACopyIsRefused) {
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = iota(context, {4, 6});
  EXPECT_EQ(x.slice(1, 0, 4).view({4, 2, 2}).strides(), (Shape{6, 2, 1}));
  EXPECT_THROW((void)x.transpose(0, 1).view({24}), ValueError);
  EXPECT_THROW((void)x.view({5, 5}), ValueError);
}

// labels: base.Tensor G15
TEST(Tensor, ZeroSizeShapesAreLegal) {
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = Tensor::zeros(context, {0, 64}, DType::bfloat16);
  EXPECT_EQ(x.numel(), 0);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.view({64, 0}).shape(), (Shape{64, 0}));
  EXPECT_TRUE(x.to_vector<std::uint16_t>().empty());
  EXPECT_THROW((void)Tensor::empty(context, {-1, 2}, DType::float32), ValueError);
}

// labels: base.Tensor R05
TEST(Tensor, SizesBeyondTwoToThe31AreCountedIn64Bits) {
  const ContextPtr meta = make_meta_context(*reference::make_cpu_context());
  const Tensor x = Tensor::empty(meta, {65536, 65537}, DType::float32);
  EXPECT_EQ(x.numel(), std::int64_t{65536} * 65537);
  EXPECT_EQ(x.strides()[0], 65537);
  EXPECT_EQ(meta->allocator()->stats().live_bytes, std::int64_t{65536} * 65537 * 4);
}

// labels: base.Context
TEST(Tensor, OperandsOfDifferentContextsAreRefused) {
  const Tensor a = iota(reference::make_cpu_context(), {2});
  const Tensor b = iota(reference::make_cpu_context(), {2});
  EXPECT_THROW((void)common_context("add", {&a, &b}), ValueError);
  EXPECT_EQ(common_context("add", {&a, nullptr, &a}), a.context());
}

}  // namespace
}  // namespace kitchen
