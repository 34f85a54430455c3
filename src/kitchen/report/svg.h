#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kitchen::report {

/// Attribute names and unescaped values of one element.
using SvgAttributes = std::vector<std::pair<std::string, std::string>>;

/// A position in user units (one CSS pixel at the natural size), y downwards.
struct SvgPoint {
  double x = 0.0;
  double y = 0.0;
};

/// `value` with at most two decimals and no exponent, independent of the locale.
/// @throws ValueError if `value` is not finite: no viewer can place such an element.
std::string svg_number(double value);

/// Builds one SVG image as well-formed XML. The only place of the project that writes SVG.
///
/// Elements appear in the order of the calls. Colours are given as presentation attributes, so that
/// the file is right by itself, and elements carry classes, so that a page may restyle an inlined
/// image.
/// @source Scalable Vector Graphics (SVG) 2, W3C; accessible names by `<title>` and `<desc>`.
class SvgDocument {
 public:
  /// @param width, height Size in user units, both > 0; also the viewBox.
  /// @param title         Short name, read by screen readers.
  /// @param description   What the picture shows, in words.
  /// @param id            Prefix of the ids inside; unique within a page.
  /// @throws ValueError if a size is not positive and finite, `title` is empty or `id` is no XML
  /// name.
  SvgDocument(double width, double height, std::string title, std::string description,
              std::string id);

  void line(SvgPoint from, SvgPoint to, const SvgAttributes& attributes);
  /// Draws nothing for fewer than two points.
  void polyline(const std::vector<SvgPoint>& points, const SvgAttributes& attributes);
  void polygon(const std::vector<SvgPoint>& points, const SvgAttributes& attributes);
  void circle(SvgPoint center, double radius, const SvgAttributes& attributes);
  /// `tooltip`, if any, is shown by browsers while the pointer rests on the rectangle.
  void rect(SvgPoint corner, double width, double height, const SvgAttributes& attributes,
            std::string_view tooltip = {});
  void text(SvgPoint baseline, std::string_view content, const SvgAttributes& attributes);

  /// Everything up to the matching close_group() is inside one `<g>`.
  void open_group(const SvgAttributes& attributes);
  /// @throws AssertionError if no group is open.
  void close_group();

  /// Adds a square tile in colour `color`: rising lines (`kind` 1), dots (2), crossed (3), falling
  /// (4) or level lines (5).
  /// @returns the paint `url(#...)` to be used as a fill.
  std::string add_hatch(int kind, const std::string& color, const std::string& css_class);

  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }
  [[nodiscard]] const std::string& title() const { return title_; }

  /// The image as a file of its own, with the SVG namespace.
  /// @throws AssertionError if a group is still open.
  [[nodiscard]] std::string to_string() const;
  /// The image as an element of an HTML page, where the namespace is implied.
  [[nodiscard]] std::string to_inline_string() const;

 private:
  void element(std::string_view name, const SvgAttributes& geometry, const SvgAttributes& style,
               std::string_view content);
  [[nodiscard]] std::string render(std::string_view namespace_attribute) const;

  double width_;
  double height_;
  std::string title_;
  std::string description_;
  std::string id_;
  std::string definitions_;
  std::string body_;
  int open_groups_ = 0;
  int hatches_ = 0;
};

}  // namespace kitchen::report
