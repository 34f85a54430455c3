#include "kitchen/train/safetensors.h"

#include "kitchen/base/error.h"
#include "kitchen/train/safetensors_header.h"
#include "kitchen/train/tensor_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kitchen::train {

namespace {

constexpr std::int64_t kLengthBytes = 8;
/// Limit of the format's own reader; a larger length means that the file is something else.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

using LengthField = std::array<std::uint8_t, kLengthBytes>;

std::uint64_t decode_length(const LengthField& field) {
  std::uint64_t length = 0;
  for (std::size_t i = field.size(); i-- > 0;) length = length << 8 | field[i];
  return length;
}

LengthField encode_length(std::uint64_t length) {
  LengthField field{};
  for (std::uint8_t& byte : field) {
    byte = static_cast<std::uint8_t>(length & 0xFF);
    length >>= 8;
  }
  return field;
}

std::string hex_of(const LengthField& field) {
  std::string text;
  for (const std::uint8_t byte : field) text += fmt::format("{:02x} ", byte);
  text.pop_back();
  return text;
}

[[noreturn]] void refuse_size(const std::string& path, const char* relation, std::int64_t wanted,
                              const std::string& part, std::int64_t found) {
  throw RuntimeError(fmt::format(
      "{}: wanted {}{} bytes ({}), got {}: the file is {}; take another copy of it", path, relation,
      wanted, part, found, found < wanted ? "cut" : "longer than its header says"));
}

/// The header text of an open file; tells a cut file from one that is something else.
std::string read_header_text(const FileReader& file) {
  if (file.bytes() < kLengthBytes) {
    refuse_size(file.path(), "at least ", kLengthBytes, "header length", file.bytes());
  }
  LengthField field{};
  file.read_at(0, field.data(), kLengthBytes);
  const std::uint64_t length = decode_length(field);
  if (length > kMaxHeaderBytes || length < 2) {
    throw RuntimeError(fmt::format(
        "{}: no safetensors file: it begins with {}, read as a header length of {} "
        "bytes, expected 2 to {} and then '{{'. `kitchen checkpoint export` writes such "
        "a file, `kitchen checkpoint import` reads those of other programs",
        file.path(), hex_of(field), length, kMaxHeaderBytes));
  }
  const auto header_bytes = static_cast<std::int64_t>(length);
  if (file.bytes() < kLengthBytes + header_bytes) {
    refuse_size(file.path(), "at least ", kLengthBytes + header_bytes,
                fmt::format("header of {} + {}", kLengthBytes, header_bytes), file.bytes());
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read_at(kLengthBytes, text.data(), header_bytes);
  if (text.front() != '{') {
    throw RuntimeError(fmt::format(
        "{}: no safetensors file: byte 8 is 0x{:02x}, expected '{{' (0x7b). `kitchen "
        "checkpoint export` writes such a file, `kitchen checkpoint import` reads those "
        "of other programs",
        file.path(), static_cast<unsigned char>(text.front())));
  }
  return text;
}

/// Entries in file order with their byte ranges, and the tensor of each.
struct Plan {
  std::vector<SafetensorsEntry> entries;
  std::vector<Tensor> tensors;
  std::int64_t data_bytes = 0;
};

Plan plan_file(const TensorsByName& tensors) {
  std::vector<const TensorsByName::value_type*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const std::int64_t size_a = size_of(a->second.dtype());
    const std::int64_t size_b = size_of(b->second.dtype());
    return size_a != size_b ? size_a > size_b : a->first < b->first;
  });
  Plan plan;
  for (const auto* item : order) {
    const Tensor& tensor = item->second;
    const std::int64_t end = plan.data_bytes + tensor.nbytes();
    plan.entries.push_back({item->first, tensor.dtype(), tensor.shape(), plan.data_bytes, end});
    plan.tensors.push_back(tensor);
    plan.data_bytes = end;
  }
  return plan;
}

}  // namespace

std::pair<std::string, std::string> weight_layout_metadata() {
  return {"weight_layout", "(out_features, in_features), row-major"};
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result{FileReader(path)};
  const std::string text = read_header_text(result.file_);
  SafetensorsHeader header = parse_safetensors_header(path, text);
  result.data_offset_ = kLengthBytes + static_cast<std::int64_t>(text.size());
  const std::int64_t data_bytes = header.entries.empty() ? 0 : header.entries.back().end;
  std::int64_t wanted = 0;
  if (__builtin_add_overflow(result.data_offset_, data_bytes, &wanted) ||
      result.file_.bytes() != wanted) {
    refuse_size(path, "", wanted,
                fmt::format("header {} + data {}", result.data_offset_, data_bytes),
                result.file_.bytes());
  }
  result.entries_ = std::move(header.entries);
  result.metadata_ = std::move(header.metadata);
  return result;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [name](const auto& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<std::uint8_t> SafetensorsFile::read_bytes(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    throw KeyError(
        fmt::format("{}: has no tensor '{}'; it holds {} tensors, listed by `kitchen "
                    "checkpoint info`",
                    path(), name, entries_.size()));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(entry->end - entry->begin));
  file_.read_at(data_offset_ + entry->begin, bytes.data(), entry->end - entry->begin);
  return bytes;
}

Tensor SafetensorsFile::read(std::string_view name, const ContextPtr& context) const {
  const std::vector<std::uint8_t> bytes = read_bytes(name);
  const SafetensorsEntry* entry = find(name);
  const Tensor tensor = Tensor::empty(context, entry->shape, entry->dtype);
  set_bytes(tensor, bytes);
  return tensor;
}

std::int64_t safetensors_bytes(const TensorsByName& tensors, const SafetensorsMetadata& metadata) {
  const Plan plan = plan_file(tensors);
  const std::string header = make_safetensors_header(plan.entries, metadata);
  return kLengthBytes + static_cast<std::int64_t>(header.size()) + plan.data_bytes;
}

SavedFile save_safetensors(const std::string& path, const TensorsByName& tensors,
                           const SafetensorsMetadata& metadata) {
  const Plan plan = plan_file(tensors);
  const std::string header = make_safetensors_header(plan.entries, metadata);
  const auto header_bytes = static_cast<std::int64_t>(header.size());
  const LengthField length = encode_length(header.size());
  FileWriter writer(path, kLengthBytes + header_bytes + plan.data_bytes);
  writer.write(length.data(), kLengthBytes);
  writer.write(header.data(), header_bytes);
  for (const Tensor& tensor : plan.tensors) {
    const std::vector<std::uint8_t> bytes = bytes_of(tensor);
    writer.write(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  }
  writer.finish();
  return {writer.bytes(), writer.checksum()};
}

}  // namespace kitchen::train
