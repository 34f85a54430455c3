#include "kitchen/base/dtype.h"

#include "kitchen/base/error.h"

#include <array>
#include <utility>

namespace kitchen {

namespace {

struct DTypeRow {
  DType dtype;
  std::int64_t bytes;
  const char* name;
};

constexpr std::array<DTypeRow, 11> kRows{{
    {DType::float32, 4, "float32"},
    {DType::float16, 2, "float16"},
    {DType::bfloat16, 2, "bfloat16"},
    {DType::float8_e4m3, 1, "float8_e4m3"},
    {DType::float8_e5m2, 1, "float8_e5m2"},
    {DType::float4_e2m1, 1, "float4_e2m1"},
    {DType::float8_e8m0, 1, "float8_e8m0"},
    {DType::int32, 4, "int32"},
    {DType::int64, 8, "int64"},
    {DType::uint8, 1, "uint8"},
    {DType::boolean, 1, "bool"},
}};

const DTypeRow& row_of(DType dtype) {
  for (const DTypeRow& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  throw ValueError("DType: unknown enumerator " + std::to_string(static_cast<int>(dtype)));
}

}  // namespace

std::int64_t size_of(DType dtype) { return row_of(dtype).bytes; }

std::string to_string(DType dtype) { return row_of(dtype).name; }

DType dtype_from_string(std::string_view text) {
  std::string known;
  for (const DTypeRow& row : kRows) {
    if (text == row.name) return row.dtype;
    known += known.empty() ? row.name : std::string(", ") + row.name;
  }
  throw ValueError("DType: '" + std::string(text) + "' is no dtype; known are " + known);
}

bool is_high_precision(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

}  // namespace kitchen
