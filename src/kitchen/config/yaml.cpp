#include "kitchen/config/yaml.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

namespace kitchen {

namespace {

/// An alias copies its value, so a few nested aliases could ask for more memory than there is.
constexpr std::size_t kMaxValues = 100000;

constexpr const char* kCoreTagPrefix = "tag:yaml.org,2002:";

std::size_t count_values(const ConfigValue& value) {
  std::size_t count = 1;
  if (const auto* list = value.get_if<ConfigList>()) {
    for (const ConfigValue& element : *list) count += count_values(element);
  } else if (const auto* dict = value.get_if<ConfigDict>()) {
    for (const ConfigDict::Entry& entry : *dict) count += count_values(entry.value);
  }
  return count;
}

/// Builds a ConfigValue from the parser's events. Nodes of yaml-cpp are not used: they convert
/// scalars by rules of their own and hide duplicate keys.
class DocumentBuilder : public YAML::EventHandler {
 public:
  explicit DocumentBuilder(const std::string& source_name)
      : file_(std::make_shared<const std::string>(source_name)) {}

  ConfigValue take_root() { return std::move(root_); }
  bool has_document() const { return has_document_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (has_document_) fail(mark, "a second document starts; expected one document a file");
    has_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(nullptr, mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias stands inside the value that it names");
    count_ += count_values(found->second);
    if (count_ > kMaxValues) {
      fail(mark, fmt::format("aliases expand the document to more than {} values", kMaxValues));
    }
    add(found->second, mark, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (expects_key()) {
      if (anchor != YAML::NullAnchor) remember(anchor, text);
      set_key(mark, tag, text);
      return;
    }
    add(resolve(mark, tag, text), mark, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_collection_tag(mark, tag, "seq");
    open(mark, anchor, false);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_collection_tag(mark, tag, "map");
    open(mark, anchor, true);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    bool is_map = false;
    YAML::anchor_t anchor = YAML::NullAnchor;
    SourceLocation location;
    ConfigDict dict;
    ConfigList list;
    bool has_key = false;
    std::string key;
    SourceLocation key_location;
  };

  SourceLocation at(const YAML::Mark& mark) const { return {file_, mark.line + 1}; }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    throw ValueError(to_string(at(mark)) + ": " + what);
  }

  bool expects_key() const {
    return !frames_.empty() && frames_.back().is_map && !frames_.back().has_key;
  }

  void set_key(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    Frame& frame = frames_.back();
    const bool is_plain = tag.empty() || tag == "?";
    if (text == "<<" && is_plain) {
      fail(mark, "merge keys are not supported; write the keys out, or use a plain alias");
    }
    if (frame.dict.contains(text)) {
      throw ValueError(fmt::format("{}: duplicate key {}, lines {} and {}", *file_, text,
                                   frame.dict.key_location(text).line, mark.line + 1));
    }
    frame.key = text;
    frame.key_location = at(mark);
    frame.has_key = true;
  }

  ConfigValue resolve(const YAML::Mark& mark, const std::string& tag,
                      const std::string& text) const {
    if (tag == "!" || tag == std::string(kCoreTagPrefix) + "str") return text;
    ConfigValue value;
    try {
      value = resolve_plain_scalar(text);
    } catch (const ValueError& error) {
      fail(mark, error.what());
    }
    if (tag.empty() || tag == "?") return value;
    const std::string type = value.type_name();
    const bool agrees = (tag == std::string(kCoreTagPrefix) + "int" && type == "integer") ||
                        (tag == std::string(kCoreTagPrefix) + "float" && type == "float") ||
                        (tag == std::string(kCoreTagPrefix) + "bool" && type == "bool") ||
                        (tag == std::string(kCoreTagPrefix) + "null" && type == "null");
    if (!agrees) fail(mark, fmt::format("tag {} does not fit the value \"{}\"", tag, text));
    return value;
  }

  void check_collection_tag(const YAML::Mark& mark, const std::string& tag,
                            const std::string& name) const {
    if (tag.empty() || tag == "?" || tag == "!" || tag == kCoreTagPrefix + name) return;
    fail(mark, fmt::format("tag {} is not supported here", tag));
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_map) {
    if (expects_key()) fail(mark, "a mapping key must be text, found a collection");
    Frame frame;
    frame.is_map = is_map;
    frame.anchor = anchor;
    frame.location = at(mark);
    // A collection is found again by the line of its key, not by that of its first element.
    if (!frames_.empty() && frames_.back().is_map) frame.location = frames_.back().key_location;
    frames_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    frame.dict.set_location(frame.location);
    ConfigValue value =
        frame.is_map ? ConfigValue(std::move(frame.dict)) : ConfigValue(std::move(frame.list));
    place(std::move(value), frame.location, frame.anchor);
  }

  void add(ConfigValue value, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (expects_key()) fail(mark, "a mapping key must be text, found " + value.repr());
    place(std::move(value), at(mark), anchor);
  }

  void place(ConfigValue value, const SourceLocation& location, YAML::anchor_t anchor) {
    if (++count_ > kMaxValues) {
      throw ValueError(fmt::format("{}: more than {} values", to_string(location), kMaxValues));
    }
    value.set_location(location);
    if (anchor != YAML::NullAnchor) remember(anchor, value);
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.is_map) {
      frame.dict.set(std::move(frame.key), std::move(value), frame.key_location);
      frame.has_key = false;
    } else {
      frame.list.push_back(std::move(value));
    }
  }

  void remember(YAML::anchor_t anchor, const ConfigValue& value) { anchors_[anchor] = value; }

  std::shared_ptr<const std::string> file_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, ConfigValue> anchors_;
  ConfigValue root_;
  std::size_t count_ = 0;
  bool has_document_ = false;
};

}  // namespace

ConfigValue parse_yaml(const std::string& text, const std::string& source_name) {
  DocumentBuilder builder(source_name);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw ValueError(fmt::format("{}, line {}: YAML syntax error: {}", source_name,
                                 error.mark.line + 1, error.msg));
  }
  return builder.take_root();
}

ConfigValue parse_yaml_file(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored)) {
    throw IOError("cannot read the configuration file " + path +
                  "; expected the path of a readable YAML file");
  }
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) throw IOError("reading the configuration file " + path + " failed");
  return parse_yaml(text.str(), path);
}

ConfigDict parse_yaml_mapping_file(const std::string& path, const std::string& expected) {
  const ConfigValue document = parse_yaml_file(path);
  if (const auto* mapping = document.get_if<ConfigDict>()) return *mapping;
  if (document.is_null()) {
    throw TypeError(fmt::format("{}: the document is empty; expected {}", path, expected));
  }
  throw TypeError(
      fmt::format("{}: the document is {}; expected {}", path, describe(document), expected));
}

}  // namespace kitchen
