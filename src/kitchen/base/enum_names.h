#pragma once

#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace kitchen {

/// Enumerator of that exact, case-sensitive text. Specialised beside each enum.
/// @throws ValueError naming the text, the enum and the known texts.
template <class E>
E from_string(std::string_view text);

/// One row of an enum's name table: the single place where a text belongs to an enumerator.
template <class E>
struct EnumName {
  E value;
  const char* text;
};

/// All texts of a name table in its order.
template <class E, std::size_t N>
std::vector<std::string> enum_texts(const std::array<EnumName<E>, N>& names) {
  std::vector<std::string> texts;
  for (const EnumName<E>& name : names) texts.emplace_back(name.text);
  return texts;
}

template <class E, std::size_t N>
std::string enum_to_string(const std::array<EnumName<E>, N>& names, E value) {
  for (const EnumName<E>& name : names) {
    if (name.value == value) return name.text;
  }
  return "unknown";
}

template <class E, std::size_t N>
E enum_from_string(const std::array<EnumName<E>, N>& names, const char* enum_name,
                   std::string_view text) {
  for (const EnumName<E>& name : names) {
    if (name.text == text) return name.value;
  }
  const std::vector<std::string> texts = enum_texts(names);
  throw ValueError(std::string(enum_name) + ": unknown text \"" + std::string(text) +
                   "\", expected one of: " + join_names(texts) + ". " + did_you_mean(text, texts));
}

}  // namespace kitchen
