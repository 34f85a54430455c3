#include "kitchen/report/svg.h"

#include "kitchen/base/error.h"
#include "kitchen/report/xml_escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace kitchen::report {
namespace {

bool is_xml_name(std::string_view name) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto is_name_char = [&](char c) {
    return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), is_name_char);
}

std::string attribute_text(const SvgAttributes& attributes) {
  std::string out;
  for (const auto& [name, value] : attributes) {
    if (!is_xml_name(name)) {
      throw ValueError(
          fmt::format("SvgDocument: attribute name \"{}\" is no XML name; use letters, digits, "
                      "'-' and '_', a letter first",
                      name));
    }
    out += fmt::format(" {}=\"{}\"", name, xml_escape(value));
  }
  return out;
}

std::string point_list(const std::vector<SvgPoint>& points) {
  std::string out;
  for (const SvgPoint& point : points) {
    if (!out.empty()) out += ' ';
    out += svg_number(point.x) + ',' + svg_number(point.y);
  }
  return out;
}

}  // namespace

std::string svg_number(double value) {
  if (!std::isfinite(value)) {
    throw ValueError(fmt::format(
        "svg_number: found {}, expected a finite number; leave the element out", value));
  }
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

SvgDocument::SvgDocument(double width, double height, std::string title, std::string description,
                         std::string id)
    : width_(width),
      height_(height),
      title_(std::move(title)),
      description_(std::move(description)),
      id_(std::move(id)) {
  if (!(std::isfinite(width) && std::isfinite(height) && width > 0.0 && height > 0.0)) {
    throw ValueError(
        fmt::format("SvgDocument: size {} x {}, expected two positive numbers", width, height));
  }
  if (title_.empty()) throw ValueError("SvgDocument: the title is empty; screen readers need one");
  if (!is_xml_name(id_)) {
    throw ValueError(
        fmt::format("SvgDocument: id \"{}\" is no XML name; use letters, digits, '-' and '_', "
                    "a letter first",
                    id_));
  }
}

void SvgDocument::line(SvgPoint from, SvgPoint to, const SvgAttributes& attributes) {
  element("line",
          {{"x1", svg_number(from.x)},
           {"y1", svg_number(from.y)},
           {"x2", svg_number(to.x)},
           {"y2", svg_number(to.y)}},
          attributes, {});
}

void SvgDocument::polyline(const std::vector<SvgPoint>& points, const SvgAttributes& attributes) {
  if (points.size() < 2) return;
  element("polyline", {{"points", point_list(points)}}, attributes, {});
}

void SvgDocument::polygon(const std::vector<SvgPoint>& points, const SvgAttributes& attributes) {
  element("polygon", {{"points", point_list(points)}}, attributes, {});
}

void SvgDocument::circle(SvgPoint center, double radius, const SvgAttributes& attributes) {
  element("circle",
          {{"cx", svg_number(center.x)}, {"cy", svg_number(center.y)}, {"r", svg_number(radius)}},
          attributes, {});
}

void SvgDocument::rect(SvgPoint corner, double width, double height,
                       const SvgAttributes& attributes, std::string_view tooltip) {
  element("rect",
          {{"x", svg_number(corner.x)},
           {"y", svg_number(corner.y)},
           {"width", svg_number(std::max(width, 0.0))},
           {"height", svg_number(std::max(height, 0.0))}},
          attributes,
          tooltip.empty() ? std::string() : "<title>" + xml_escape(tooltip) + "</title>");
}

void SvgDocument::text(SvgPoint baseline, std::string_view content,
                       const SvgAttributes& attributes) {
  element("text", {{"x", svg_number(baseline.x)}, {"y", svg_number(baseline.y)}}, attributes,
          xml_escape(content));
}

void SvgDocument::open_group(const SvgAttributes& attributes) {
  body_ += "<g" + attribute_text(attributes) + ">\n";
  ++open_groups_;
}

void SvgDocument::close_group() {
  if (open_groups_ == 0) throw AssertionError("SvgDocument::close_group: no group is open");
  body_ += "</g>\n";
  --open_groups_;
}

std::string SvgDocument::add_hatch(int kind, const std::string& color,
                                   const std::string& css_class) {
  const std::string name = fmt::format("{}-hatch{}", id_, hatches_++);
  constexpr const char* kShapes[] = {
      "<path d=\"M0 6 6 0M-1 1 1 -1M5 7 7 5\" stroke=\"currentColor\" stroke-width=\"2\"/>",
      "<circle cx=\"3\" cy=\"3\" r=\"1.6\" fill=\"currentColor\"/>",
      "<path d=\"M0 0 6 6M0 6 6 0\" stroke=\"currentColor\" stroke-width=\"1.2\"/>",
      "<path d=\"M0 0 6 6M-1 5 1 7M5 -1 7 1\" stroke=\"currentColor\" stroke-width=\"2\"/>",
      "<path d=\"M0 3H6\" stroke=\"currentColor\" stroke-width=\"2.5\"/>"};
  definitions_ += fmt::format(
      "<pattern id=\"{}\" class=\"{}\" color=\"{}\" width=\"6\" height=\"6\" "
      "patternUnits=\"userSpaceOnUse\">{}"
      "</pattern>\n",
      name, xml_escape(css_class), xml_escape(color), kShapes[std::clamp(kind, 1, 5) - 1]);
  return "url(#" + name + ")";
}

void SvgDocument::element(std::string_view name, const SvgAttributes& geometry,
                          const SvgAttributes& style, std::string_view content) {
  body_ += fmt::format("<{}{}{}", name, attribute_text(geometry), attribute_text(style));
  body_ += content.empty() ? std::string("/>\n") : fmt::format(">{}</{}>\n", content, name);
}

std::string SvgDocument::render(std::string_view namespace_attribute) const {
  if (open_groups_ != 0) {
    throw AssertionError(
        fmt::format("SvgDocument \"{}\": {} groups are open, expected 0; call close_group", title_,
                    open_groups_));
  }
  std::string out = fmt::format(
      "<svg{} viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" "
      "aria-labelledby=\"{}-title {}-desc\" "
      "font-family=\"system-ui, 'DejaVu Sans', sans-serif\">\n",
      namespace_attribute, svg_number(width_), svg_number(height_), svg_number(width_),
      svg_number(height_), id_, id_);
  out += fmt::format("<title id=\"{}-title\">{}</title>\n<desc id=\"{}-desc\">{}</desc>\n", id_,
                     xml_escape(title_), id_, xml_escape(description_));
  if (!definitions_.empty()) out += "<defs>\n" + definitions_ + "</defs>\n";
  return out + body_ + "</svg>\n";
}

std::string SvgDocument::to_string() const {
  return render(" xmlns=\"http://www.w3.org/2000/svg\"");
}

std::string SvgDocument::to_inline_string() const {
  return render("");
}

}  // namespace kitchen::report
