#include "kitchen/analysis/npy.h"

#include "kitchen/base/error.h"
#include "kitchen/train/durable_file.h"
#include "kitchen/train/tensor_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace kitchen::analysis {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw ValueError(path + ": " + reason);
}

struct NpyHeader {
  std::string descr;
  bool is_fortran_order = false;
  Shape shape;
};

/// The header is the text of a Python dictionary with three keys.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    std::array<bool, 3> seen{};
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.descr = quoted();
        seen[0] = true;
      } else if (key == "fortran_order") {
        header.is_fortran_order = boolean();
        seen[1] = true;
      } else if (key == "shape") {
        header.shape = tuple();
        seen[2] = true;
      } else {
        fail(fmt::format("the key '{}'", key), "descr, fortran_order and shape");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!(seen[0] && seen[1] && seen[2])) fail("a missing key", "descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    refuse(path_, fmt::format("its .npy header has {}, expected {}; the file is damaged or holds "
                              "structured elements, save it again as a plain array",
                              found, expected));
  }

  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (accept(wanted)) return;
    const std::string found =
        at_ < text_.size() ? fmt::format("'{}'", text_[at_]) : std::string("its end");
    fail(fmt::format("{} at byte {}", found, at_), fmt::format("'{}'", wanted));
  }

  std::string quoted() {
    const char quote = peek() == '"' ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a text without end", "a closing quote");
    const std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    (void)peek();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    fail("another value of fortran_order", "True or False");
  }

  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      (void)peek();
      std::int64_t size = -1;
      const char* end = text_.data() + text_.size();
      const auto result = std::from_chars(text_.data() + at_, end, size);
      if (result.ec != std::errc() || size < 0)
        fail("another value in shape", "sizes of 0 or more");
      at_ = static_cast<std::size_t>(result.ptr - text_.data());
      shape.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

struct NpyFile {
  NpyHeader header;
  std::int64_t data_offset = 0;
};

NpyFile read_header(const train::FileReader& file) {
  std::array<char, 12> start{};
  const std::int64_t available = std::min<std::int64_t>(file.bytes(), 12);
  file.read_at(0, start.data(), available);
  if (std::string_view(start.data(), kMagic.size()) != kMagic) {
    refuse(file.path(),
           "no .npy file: it does not begin with \\x93NUMPY; write one by numpy.save, or give a "
           "*.safetensors file");
  }
  const int version = start[6];
  if (version < 1 || version > 3) {
    refuse(file.path(),
           fmt::format("version {} of the .npy format, known are 1, 2 and 3", version));
  }
  const std::int64_t length_bytes = version == 1 ? 2 : 4;
  const std::int64_t text_offset = 8 + length_bytes;
  std::uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, static_cast<std::size_t>(length_bytes));
  NpyFile result;
  result.data_offset = text_offset + static_cast<std::int64_t>(length);
  if (file.bytes() < result.data_offset) {
    refuse(file.path(),
           fmt::format("cut inside its header: {} bytes, expected at least {}; copy it again",
                       file.bytes(), result.data_offset));
  }
  std::string text(length, '\0');
  file.read_at(text_offset, text.data(), static_cast<std::int64_t>(length));
  result.header = HeaderParser(file.path(), text).parse();
  return result;
}

DType dtype_of(const std::string& path, const std::string& descr,
               const std::optional<DType>& wanted) {
  const std::string kind = descr.empty() ? descr : descr.substr(1);
  if (descr.front() == '>') {
    refuse(path, fmt::format("elements '{}' are big endian; save x.astype('<{}')", descr, kind));
  }
  if (kind == "u2" || kind == "V2") {
    if (wanted == DType::bfloat16) return DType::bfloat16;
    refuse(path, fmt::format("elements '{}' are 16 bits without a meaning; add --input-dtype bf16 "
                             "if they are the bits of bfloat16",
                             descr));
  }
  if (kind != "f4" && kind != "f2") {
    refuse(path, fmt::format("elements are '{}', expected '<f4', '<f2', or '<u2' with "
                             "--input-dtype bf16; save x.astype('float32')",
                             descr));
  }
  const DType found = kind == "f4" ? DType::float32 : DType::float16;
  if (wanted && *wanted != found) {
    refuse(path, fmt::format("elements are '{}' ({}), --input-dtype asks for {}{}", descr,
                             to_string(found), to_string(*wanted),
                             *wanted == DType::bfloat16
                                 ? "; give the bits of bfloat16 as '<u2'"
                                 : "; leave the flag out or save the array in that type"));
  }
  return found;
}

}  // namespace

DType input_dtype_from_string(const std::string& text) {
  if (text == "fp32") return DType::float32;
  if (text == "fp16") return DType::float16;
  if (text == "bf16") return DType::bfloat16;
  throw ValueError("--input-dtype is '" + text + "', expected fp32, fp16 or bf16");
}

Tensor read_npy(const std::string& path, const std::optional<DType>& dtype,
                const ContextPtr& context) {
  const train::FileReader file(path);
  const NpyFile npy = read_header(file);
  if (npy.header.descr.empty()) refuse(path, "the dtype in its header is empty; save it again");
  const DType found = dtype_of(path, npy.header.descr, dtype);
  if (npy.header.is_fortran_order) {
    refuse(path, "the array is in Fortran order; save numpy.ascontiguousarray(x)");
  }
  std::int64_t wanted_bytes = size_of(found);
  for (const std::int64_t size : npy.header.shape) {
    if (__builtin_mul_overflow(wanted_bytes, size, &wanted_bytes)) {
      refuse(path, fmt::format("the shape {} overflows", to_string(npy.header.shape)));
    }
  }
  const std::int64_t data_bytes = file.bytes() - npy.data_offset;
  if (data_bytes != wanted_bytes) {
    refuse(path, fmt::format("{} bytes of data, expected {} for {} of {}; {}", data_bytes,
                             wanted_bytes, to_string(npy.header.shape), to_string(found),
                             data_bytes < wanted_bytes ? "the file is cut, copy it again"
                                                       : "give a file that holds one array"));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(data_bytes));
  file.read_at(npy.data_offset, bytes.data(), data_bytes);
  const Tensor tensor = Tensor::empty(context, npy.header.shape, found);
  train::set_bytes(tensor, bytes);
  return tensor;
}

}  // namespace kitchen::analysis
