#include "class_members.h"

#include <cctype>
#include <sstream>

namespace kitchen::tools {
namespace {

bool is_doc_line(const std::string& line) {
  const std::string text = trimmed(line);
  return starts_with(text, "///") || ends_with(text, "*/");
}

/// A doc comment stands on the line before a declaration, or after it as `///<`.
bool is_documented(const SourceFile& file, std::size_t first, std::size_t last) {
  const bool is_before = first > 0 && is_doc_line(file.lines[first - 1]);
  return is_before || file.lines[last].find("///<") != std::string::npos;
}

/// The text before the parameter list, or nothing if the statement declares no function.
std::optional<std::string> head_of_function(const std::string& statement) {
  int angles = 0;
  for (std::size_t i = 0; i < statement.size(); ++i) {
    const char c = statement[i];
    const bool is_operator = ends_with(trimmed(statement.substr(0, i)), "operator");
    if (c == '<' && !is_operator) ++angles;
    if (c == '>' && angles > 0) --angles;
    if (c == '=' && angles == 0 && statement.find("operator") > i) return std::nullopt;
    if (c == '(' && angles == 0) return trimmed(statement.substr(0, i));
  }
  return std::nullopt;
}

std::string last_identifier(const std::string& text) {
  std::size_t start = text.size();
  while (start > 0) {
    const char c = text[start - 1];
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '~') break;
    --start;
  }
  return text.substr(start);
}

std::string first_word(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  return word;
}

/// Walks a class body and collects the declarations in its public parts.
class BodyWalker {
 public:
  BodyWalker(const SourceFile& file, const std::vector<std::string>& code, bool is_public)
      : file_(file), code_(code), is_public_(is_public) {}

  void walk(std::size_t line, std::size_t column, ClassDefinition& definition) {
    for (; line < code_.size(); ++line, column = 0) {
      for (; column < code_[line].size(); ++column) {
        if (take(code_[line][column], line, column, definition)) return;
      }
      definition.body += '\n';
      statement_ += ' ';
    }
  }

 private:
  /// @returns true at the brace that closes the class.
  bool take(char c, std::size_t line, std::size_t column, ClassDefinition& definition) {
    definition.body += c;
    if (c == '(') ++parentheses_;
    if (c == ')') --parentheses_;
    if (parentheses_ > 0) {
      add(c, line);
      return false;
    }
    if (c == '{') {
      if (braces_++ == 0) finish(line, definition);
    } else if (c == '}') {
      if (braces_-- == 0) return true;
      statement_.clear();
    } else if (braces_ == 0 && c == ';') {
      finish(line, definition);
    } else if (braces_ == 0 && c == ':' && is_access_label(line, column)) {
      is_public_ = trimmed(statement_) == "public";
      statement_.clear();
    } else if (braces_ == 0) {
      add(c, line);
    }
    return false;
  }

  void add(char c, std::size_t line) {
    if (trimmed(statement_).empty()) first_line_ = line;
    statement_ += c;
  }

  [[nodiscard]] bool is_access_label(std::size_t line, std::size_t column) const {
    const std::string word = trimmed(statement_);
    const bool is_scope = column + 1 < code_[line].size() && code_[line][column + 1] == ':';
    return !is_scope && (word == "public" || word == "protected" || word == "private");
  }

  void finish(std::size_t line, ClassDefinition& definition) {
    const std::string text = trimmed(statement_);
    statement_.clear();
    const std::string word = first_word(text);
    const bool is_other = word == "using" || word == "friend" || word == "static_assert" ||
                          word == "enum" || word == "struct" || word == "class";
    const bool is_generated =
        text.find("= delete") != std::string::npos || text.find("= default") != std::string::npos;
    if (!is_public_ || is_other || is_generated) return;
    const std::optional<std::string> head = head_of_function(text);
    if (!head) return;
    const std::string name = last_identifier(*head);
    if (starts_with(name, "~")) return;
    definition.public_functions.push_back(
        {name.empty() ? *head : name, first_line_ + 1, is_documented(file_, first_line_, line)});
  }

  const SourceFile& file_;
  const std::vector<std::string>& code_;
  bool is_public_;
  int braces_ = 0;
  int parentheses_ = 0;
  std::size_t first_line_ = 0;
  std::string statement_;
};

/// Where the body of a definition that begins on `line` opens; nothing for a forward declaration.
std::optional<std::pair<std::size_t, std::size_t>> opening_brace(
    const std::vector<std::string>& code, std::size_t line) {
  for (std::size_t i = line; i < code.size(); ++i) {
    const std::size_t stop = code[i].find_first_of("{;");
    if (stop == std::string::npos) continue;
    if (code[i][stop] == ';') return std::nullopt;
    return std::make_pair(i, stop);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ClassDefinition> find_class(const SourceFile& file, const std::string& name) {
  const std::vector<std::string> code = code_only(file.lines, Literals::empty);
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::string text = trimmed(code[i]);
    const std::string kind = first_word(text);
    if ((kind != "class" && kind != "struct" && kind != "enum") || !contains_word(text, name))
      continue;
    // The name of a base class stands after the colon.
    const std::string head = text.substr(0, text.find_first_of(":{"));
    const auto open = opening_brace(code, i);
    if (!contains_word(head, name) || !open) continue;
    ClassDefinition definition;
    definition.self = {name, i + 1, is_documented(file, i, i)};
    BodyWalker walker(file, code, kind == "struct");
    walker.walk(open->first, open->second + 1, definition);
    return definition;
  }
  return std::nullopt;
}

std::optional<Declaration> find_symbol(const SourceFile& file, const std::string& name) {
  const std::vector<std::string> code = code_only(file.lines, Literals::empty);
  for (std::size_t i = 0; i < code.size(); ++i) {
    const bool is_indented = !code[i].empty() && code[i].front() == ' ';
    if (is_indented || !contains_word(code[i], name)) continue;
    return Declaration{name, i + 1, is_documented(file, i, i)};
  }
  return std::nullopt;
}

}  // namespace kitchen::tools
