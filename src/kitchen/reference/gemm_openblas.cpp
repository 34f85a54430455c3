#include "kitchen/base/error.h"
#include "kitchen/reference/gemm.h"
#include "kitchen/reference/gemm_tiles.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

#include <cblas.h>
#include <omp.h>

#include <limits>
#include <string>

namespace kitchen::reference {

namespace {

/// Items of a batch with more multiplications are cut into tiles one after the other.
constexpr std::int64_t kLargeItemWork = std::int64_t{1} << 26;

/// A [rows, k] fp32 matrix as sgemm wants it.
struct Matrix {
  const float* data = nullptr;
  std::int64_t ld = 1;
  bool k_is_unit = true;  ///< unit stride along k, else along the rows

  [[nodiscard]] const float* at_row(std::int64_t row) const {
    return data + (k_is_unit ? row * ld : row);
  }
};

/// How the rows and k of an operand lie in memory. A size of 1 makes its stride meaningless.
struct Layout {
  std::int64_t outer = 0;  ///< size along the dimension of stride `outer_stride`
  std::int64_t inner = 0;  ///< size along the unit stride dimension
  std::int64_t outer_stride = 0;
  bool k_is_unit = true;
};

Layout layout_of(const ConstView& x) {
  const std::int64_t rows = x.shape[1];
  const std::int64_t k = x.shape[2];
  const bool k_is_unit = (x.strides[2] == 1 || k <= 1) && (x.strides[1] >= k || rows <= 1);
  if (k_is_unit) return {rows, k, rows <= 1 ? k : x.strides[1], true};
  return {k, rows, k <= 1 ? rows : x.strides[2], false};
}

/// Sizes of one product and how its parts are spread. Everything but `slices` depends on shapes
/// alone.
struct Plan {
  std::int64_t batch, m, n, k;
  std::int64_t tiles_m, tiles_n;  ///< tiles of one item of the batch
  bool widen_a, widen_b;
  bool direct;             ///< sgemm writes d itself
  bool items_in_parallel;  ///< a thread takes a whole item, else the threads share its tiles
  std::int64_t slices;     ///< workspaces, one a thread that takes items
  std::int64_t floats_per_slice;
};

Plan make_plan(const ConstView& a, const ConstView& b, const ConstView& d,
               const ops::GemmEpilogue& epilogue) {
  Plan plan{};
  plan.batch = d.shape[0];
  plan.m = d.shape[1];
  plan.n = d.shape[2];
  plan.k = a.shape[2];
  const GemmTiles tiles = gemm_tiles(plan.m, plan.n, plan.k);
  plan.tiles_m = tiles.m;
  plan.tiles_n = tiles.n;
  const std::int64_t work = plan.m * plan.n * plan.k;
  plan.widen_a = a.dtype != DType::float32;
  plan.widen_b = b.dtype != DType::float32;
  // The order alpha, bias, accumulate cannot be had when sgemm has added to d already.
  const bool plain_sum =
      !epilogue.accumulate || (epilogue.alpha == 1.0f && !epilogue.bias.defined());
  plan.direct = d.dtype == DType::float32 && (d.strides[2] == 1 || plan.n <= 1) &&
                (d.strides[1] >= plan.n || plan.m <= 1) && plain_sum;
  const std::int64_t threads = omp_get_max_threads();
  plan.items_in_parallel = plan.batch >= 2 * threads ? work <= kLargeItemWork : false;
  plan.slices = plan.items_in_parallel ? std::min(threads, plan.batch) : 1;
  plan.floats_per_slice = (plan.widen_a ? plan.m * plan.k : 0) +
                          (plan.widen_b ? plan.n * plan.k : 0) +
                          (plan.direct ? 0 : plan.m * plan.n);
  return plan;
}

void require_int(const char* name, std::int64_t value) {
  if (value <= std::numeric_limits<int>::max()) return;
  throw NotImplementedError(std::string("gemm: ") + name + " = " + std::to_string(value) +
                            " exceeds 2147483647, the largest size of OpenBLAS; split the matrix");
}

/// One product of the batch: operands, output and the place where sgemm writes.
struct Item {
  ConstView a, b;  ///< rank 3, data at this item
  View d;
  Matrix a_wide, b_wide;
  float* acc = nullptr;  ///< [m, n] with leading dimension acc_ld
  std::int64_t acc_ld = 0;
};

Item make_item(const Plan& plan, const ConstView& a, const ConstView& b, const View& d,
               std::int64_t index, float* slice) {
  Item item{a, b, d, {}, {}, nullptr, 0};
  item.a.data = element_at(a.data, a.dtype, index * a.strides[0]);
  item.b.data = element_at(b.data, b.dtype, index * b.strides[0]);
  item.d.data = element_at(d.data, d.dtype, index * d.strides[0]);
  const auto matrix = [&](const ConstView& x, bool widen) {
    const Layout layout = layout_of(x);
    if (!widen)
      return Matrix{static_cast<const float*>(x.data), layout.outer_stride, layout.k_is_unit};
    const Matrix wide{slice, layout.inner, layout.k_is_unit};
    slice += layout.outer * layout.inner;
    return wide;
  };
  item.a_wide = matrix(item.a, plan.widen_a);
  item.b_wide = matrix(item.b, plan.widen_b);
  item.acc = plan.direct ? static_cast<float*>(item.d.data) : slice;
  item.acc_ld = plan.direct && plan.m > 1 ? d.strides[1] : plan.n;
  return item;
}

/// Widens outer rows [begin, end) of an operand.
void widen_rows(const ConstView& x, const Matrix& wide, std::int64_t begin, std::int64_t end) {
  const Layout layout = layout_of(x);
  auto* out = const_cast<float*>(wide.data);
  for (std::int64_t row = begin; row < end; ++row) {
    load_row(x.data, x.dtype, row * layout.outer_stride, 1, layout.inner, out + row * layout.inner);
  }
}

void finish_tile(const Plan& plan, const Item& item, const ops::GemmEpilogue& epilogue,
                 std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) {
  const bool has_bias = epilogue.bias.defined();
  if (plan.direct && !has_bias && epilogue.alpha == 1.0f) return;
  const std::int64_t width = n1 - n0;
  float bias[kTile];
  float row[kTile];
  float former[kTile];
  if (has_bias) {
    load_row(epilogue.bias.data, epilogue.bias.dtype, n0 * epilogue.bias.strides[0],
             epilogue.bias.strides[0], width, bias);
  }
  const bool adds = epilogue.accumulate && !plan.direct;
  for (std::int64_t i = m0; i < m1; ++i) {
    const float* acc = item.acc + i * item.acc_ld + n0;
    const std::int64_t offset = i * item.d.strides[1] + n0 * item.d.strides[2];
    for (std::int64_t j = 0; j < width; ++j) row[j] = acc[j] * epilogue.alpha;
    if (has_bias) {
      for (std::int64_t j = 0; j < width; ++j) row[j] += bias[j];
    }
    if (adds) {
      load_row(item.d.data, item.d.dtype, offset, item.d.strides[2], width, former);
      for (std::int64_t j = 0; j < width; ++j) row[j] += former[j];
    }
    store_row(row, item.d.data, item.d.dtype, offset, item.d.strides[2], width);
  }
}

/// Tile `tile` of an item: one sgemm and its epilogue.
void compute_tile(const Plan& plan, const Item& item, const ops::GemmEpilogue& epilogue,
                  std::int64_t tile) {
  const std::int64_t tile_m = tile / plan.tiles_n;
  const std::int64_t tile_n = tile % plan.tiles_n;
  const std::int64_t m0 = plan.m * tile_m / plan.tiles_m;
  const std::int64_t m1 = plan.m * (tile_m + 1) / plan.tiles_m;
  const std::int64_t n0 = plan.n * tile_n / plan.tiles_n;
  const std::int64_t n1 = plan.n * (tile_n + 1) / plan.tiles_n;
  float* acc = item.acc + m0 * item.acc_ld + n0;
  const bool adds = epilogue.accumulate && plan.direct;
  if (plan.k > 0) {
    cblas_sgemm(CblasRowMajor, item.a_wide.k_is_unit ? CblasNoTrans : CblasTrans,
                item.b_wide.k_is_unit ? CblasTrans : CblasNoTrans, static_cast<int>(m1 - m0),
                static_cast<int>(n1 - n0), static_cast<int>(plan.k), 1.0f, item.a_wide.at_row(m0),
                static_cast<int>(item.a_wide.ld), item.b_wide.at_row(n0),
                static_cast<int>(item.b_wide.ld), adds ? 1.0f : 0.0f, acc,
                static_cast<int>(item.acc_ld));
  } else if (!adds) {
    for (std::int64_t i = 0; i < m1 - m0; ++i) std::fill_n(acc + i * item.acc_ld, n1 - n0, 0.0f);
  }
  finish_tile(plan, item, epilogue, m0, m1, n0, n1);
}

/// All of one item by the calling thread.
void compute_item(const Plan& plan, const Item& item, const ops::GemmEpilogue& epilogue) {
  if (plan.widen_a) widen_rows(item.a, item.a_wide, 0, layout_of(item.a).outer);
  if (plan.widen_b) widen_rows(item.b, item.b_wide, 0, layout_of(item.b).outer);
  for (std::int64_t t = 0; t < plan.tiles_m * plan.tiles_n; ++t) {
    compute_tile(plan, item, epilogue, t);
  }
}

/// All of one item by all threads.
void share_item(const Plan& plan, const Item& item, const ops::GemmEpilogue& epilogue) {
  const std::int64_t rows_a = plan.widen_a ? layout_of(item.a).outer : 0;
  const std::int64_t rows_b = plan.widen_b ? layout_of(item.b).outer : 0;
#pragma omp parallel
  {
#pragma omp for schedule(static) nowait
    for (std::int64_t row = 0; row < rows_a; ++row) widen_rows(item.a, item.a_wide, row, row + 1);
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < rows_b; ++row) widen_rows(item.b, item.b_wide, row, row + 1);
#pragma omp for schedule(dynamic)
    for (std::int64_t t = 0; t < plan.tiles_m * plan.tiles_n; ++t) {
      compute_tile(plan, item, epilogue, t);
    }
  }
}

}  // namespace

std::int64_t gemm_openblas_workspace(const ConstView& a, const ConstView& b, const ConstView& d,
                                     const ops::GemmEpilogue& epilogue) {
  const Plan plan = make_plan(a, b, d, epilogue);
  return plan.slices * plan.floats_per_slice * static_cast<std::int64_t>(sizeof(float));
}

void gemm_openblas(const Stream& /*stream*/, ConstView a, ConstView b, View d,
                   const ops::GemmEpilogue& epilogue, void* workspace) {
  const Plan plan = make_plan(a, b, d, epilogue);
  if (plan.batch == 0 || plan.m == 0 || plan.n == 0) return;
  require_int("m", plan.m);
  require_int("n", plan.n);
  require_int("k", plan.k);
  require_int("a's leading dimension", layout_of(a).outer_stride);
  require_int("b's leading dimension", layout_of(b).outer_stride);
  require_int("the output's leading dimension", d.strides[1]);
  auto* scratch = static_cast<float*>(workspace);
  const auto slices = static_cast<int>(plan.slices);
  if (plan.items_in_parallel) {
#pragma omp parallel for schedule(static) num_threads(slices)
    for (std::int64_t i = 0; i < plan.batch; ++i) {
      float* slice = scratch + omp_get_thread_num() * plan.floats_per_slice;
      compute_item(plan, make_item(plan, a, b, d, i, slice), epilogue);
    }
    return;
  }
  for (std::int64_t i = 0; i < plan.batch; ++i) {
    const Item item = make_item(plan, a, b, d, i, scratch);
    if (plan.m * plan.n * plan.k <= kSerialWork) {
      compute_item(plan, item, epilogue);
    } else {
      share_item(plan, item, epilogue);
    }
  }
}

void register_gemm_kernels(Backend& backend) {
  backend.add<ops::GemmKernel>("openblas", &gemm_openblas);
  backend.add<ops::GemmWorkspaceKernel>("openblas", &gemm_openblas_workspace);
  backend.add<ops::GemmKernel>("exact", &gemm_exact);
  backend.add<ops::GemmWorkspaceKernel>("exact", &gemm_exact_workspace);
}

}  // namespace kitchen::reference
