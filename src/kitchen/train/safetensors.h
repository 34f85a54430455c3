#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/train/durable_file.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kitchen::train {

/// One tensor of a safetensors file; `begin` and `end` count bytes from the end of the header.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The string pairs under the key `__metadata__`.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I32", "I64", "U8" or "BOOL".
/// @throws TypeError for float4_e2m1: 4-bit codes are stored packed, as U8 with the logical shape
/// in the metadata.
std::string safetensors_dtype(DType dtype);

/// The pair that tells readers how linear weights lie: one row an output feature.
std::pair<std::string, std::string> weight_layout_metadata();

/// A safetensors file that was checked when it was opened.
///
/// The file is: header length N (8 bytes, little-endian), N bytes of JSON, the data. Refused are: a
/// file that is shorter or longer than its header says, a header that is no such JSON, duplicate
/// names, unknown dtypes, and offsets that overlap, leave a hole or do not fit shape and dtype.
/// @source https://github.com/huggingface/safetensors#format
class SafetensorsFile {
 public:
  /// @throws IOError if the file cannot be read; RuntimeError naming file, wanted and found.
  static SafetensorsFile open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  /// In the order of their bytes in the file.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  [[nodiscard]] const SafetensorsMetadata& metadata() const { return metadata_; }
  /// Null if there is no tensor of this name.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;

  /// Row-major little-endian bytes of a tensor. @throws KeyError naming the tensor and the file.
  [[nodiscard]] std::vector<std::uint8_t> read_bytes(std::string_view name) const;
  /// A new tensor in `context`. @throws KeyError as read_bytes.
  [[nodiscard]] Tensor read(std::string_view name, const ContextPtr& context) const;

 private:
  explicit SafetensorsFile(FileReader file) : file_(std::move(file)) {}

  FileReader file_;
  std::int64_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
  SafetensorsMetadata metadata_;
};

/// What save_safetensors wrote.
struct SavedFile {
  std::int64_t bytes = 0;
  std::string checksum;
};

/// Name and tensor; strided tensors are packed while they are written.
using TensorsByName = std::vector<std::pair<std::string, Tensor>>;

/// Header and data together, in bytes.
std::int64_t safetensors_bytes(const TensorsByName& tensors, const SafetensorsMetadata& metadata);

/// Writes `path` and forces it to the disk. Large elements come first, so that every tensor starts
/// at a multiple of its element size; equal tensors give equal bytes whatever their order.
/// @throws ValueError on a duplicate or reserved name; TypeError on a dtype without a safetensors
/// name; IOError or RuntimeError as FileWriter.
SavedFile save_safetensors(const std::string& path, const TensorsByName& tensors,
                           const SafetensorsMetadata& metadata);

}  // namespace kitchen::train
