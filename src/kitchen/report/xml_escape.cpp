#include "kitchen/report/xml_escape.h"

#include <cstddef>
#include <cstdint>

namespace kitchen::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length in bytes of the code point at the start of `text` if XML allows it there, else 0.
std::size_t valid_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    return lead >= 0x20 ? (lead == 0x7F ? 0 : 1) : (lead == '\t' || lead == '\n' || lead == '\r');
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3F);
  }
  const bool is_overlong = code < (length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool is_control = code < 0xA0;
  const bool is_noncharacter = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return is_overlong || is_surrogate || is_control || is_noncharacter ? 0 : length;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t length = valid_length(text);
    switch (text.front()) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

int count_code_points(std::string_view text) {
  int count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace kitchen::report
