#include "kitchen/report/chart_parts.h"

#include "kitchen/report/xml_escape.h"

#include <algorithm>

namespace kitchen::report {
namespace {

constexpr double kSampleWidth = 30.0;  // line or bar sample of a legend entry
constexpr double kEntryGap = 18.0;

/// Calls place(entry, x, row) for each entry in reading order and returns the number of rows.
template <typename Place>
int lay_out_legend(const std::vector<LegendEntry>& entries, double width, const Place& place) {
  double x = 0.0;
  int row = 0;
  for (const LegendEntry& entry : entries) {
    const double entry_width = kSampleWidth + 6.0 + text_width(entry.name, kFontSize);
    if (x > 0.0 && x + entry_width > width) {
      x = 0.0;
      ++row;
    }
    place(entry, x, row);
    x += entry_width + kEntryGap;
  }
  return entries.empty() ? 0 : row + 1;
}

bool is_inside_code_point(const std::string& text, std::size_t i) {
  return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
}

/// Bytes of the longest start of `text` that fits into `width`, up to a joint such as '-' if it has
/// one; one code point at least.
std::size_t fitting_prefix(const std::string& text, double width, double font_size) {
  const auto next = [&](std::size_t i) {
    do ++i;
    while (is_inside_code_point(text, i));
    return i;
  };
  std::size_t end = std::min(next(0), text.size());
  while (end < text.size() && text_width(text.substr(0, next(end)), font_size) <= width) {
    end = next(end);
  }
  if (end == text.size()) return end;
  const std::size_t joint = text.substr(0, end).find_last_of("-_./");
  return joint == std::string::npos ? end : joint + 1;
}

}  // namespace

double text_width(std::string_view text, double font_size) {
  // Measured in a wide sans-serif: digits and small letters take 0.64 of the font size, these nearly all of it.
  constexpr std::string_view kWideLetters = "mwMW@%";
  const auto wide = std::count_if(text.begin(), text.end(), [&](char c) {
    return kWideLetters.find(c) != std::string_view::npos;
  });
  return font_size * (0.64 * count_code_points(text) + 0.36 * static_cast<double>(wide));
}

std::vector<std::string> wrap_text(std::string_view text, double width, double font_size) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    for (std::size_t cut = fitting_prefix(word, width, font_size); cut < word.size();
         cut = fitting_prefix(word, width, font_size)) {
      lines.push_back(word.substr(0, cut));
      word.erase(0, cut);
    }
    if (lines.empty() || text_width(lines.back() + ' ' + word, font_size) > width) {
      lines.push_back(word);
    } else {
      lines.back() += ' ' + word;
    }
  }
  return lines;
}

std::string clip_middle(const std::string& text, double width, double font_size) {
  if (text_width(text, font_size) <= width) return text;
  std::size_t head = text.size() / 2;
  while (is_inside_code_point(text, head)) --head;
  std::size_t tail = head;
  std::string clipped;
  do {
    // The end keeps more, since it names the thing while the start counts it.
    if (head * 2 >= text.size() - tail && head > 0) {
      do --head;
      while (is_inside_code_point(text, head));
    } else {
      do ++tail;
      while (is_inside_code_point(text, tail));
    }
    clipped = text.substr(0, head) + "…" + text.substr(std::min(tail, text.size()));
  } while (tail < text.size() && text_width(clipped, font_size) > width);
  return clipped;
}

SvgAttributes text_style(const std::string& css_class, const std::string& anchor,
                         double font_size) {
  return {{"class", css_class},
          {"fill", css_class == "k-soft" ? "#4d4d4d" : "#1a1a1a"},
          {"font-size", svg_number(font_size)},
          {"text-anchor", anchor}};
}

void draw_paper(SvgDocument& document) {
  document.rect({0.0, 0.0}, document.width(), document.height(),
                {{"class", "k-paper"}, {"fill", "#ffffff"}});
}

double draw_title(SvgDocument& document, const std::vector<std::string>& lines, double top) {
  SvgAttributes style = text_style("k-ink", "start", kTitleSize);
  style.emplace_back("font-weight", "600");
  for (const std::string& line : lines) {
    document.text({4.0, top + kTitleSize}, line, style);
    top += kLineHeight + 2.0;
  }
  return top;
}

double draw_note(SvgDocument& document, const std::vector<std::string>& lines, double top) {
  for (const std::string& line : lines) {
    document.text({4.0, top + kFontSize}, line, text_style("k-soft"));
    top += kLineHeight;
  }
  return top;
}

void draw_marker(SvgDocument& document, SvgPoint center, const SeriesStyle& style) {
  const SvgAttributes paint =
      style.is_hollow
          ? SvgAttributes{{"fill", "none"}, {"stroke", "currentColor"}, {"stroke-width", "1.8"}}
          : SvgAttributes{{"class", "k-marker"}, {"fill", "currentColor"}, {"stroke", "#ffffff"}};
  const auto polygon = [&](std::vector<SvgPoint> points) {
    for (SvgPoint& point : points) point = {center.x + point.x, center.y + point.y};
    document.polygon(points, paint);
  };
  switch (style.marker) {
    case MarkerShape::circle:
      document.circle(center, 4.0, paint);
      break;
    case MarkerShape::square:
      polygon({{-4, -4}, {4, -4}, {4, 4}, {-4, 4}});
      break;
    case MarkerShape::triangle:
      polygon({{0, -5}, {5, 4}, {-5, 4}});
      break;
    case MarkerShape::diamond:
      polygon({{0, -5.5}, {5.5, 0}, {0, 5.5}, {-5.5, 0}});
      break;
    case MarkerShape::inverted_triangle:
      polygon({{0, 5}, {5, -4}, {-5, -4}});
      break;
    case MarkerShape::cross:
      polygon({{-1.5, -5},
               {1.5, -5},
               {1.5, -1.5},
               {5, -1.5},
               {5, 1.5},
               {1.5, 1.5},
               {1.5, 5},
               {-1.5, 5},
               {-1.5, 1.5},
               {-5, 1.5},
               {-5, -1.5},
               {-1.5, -1.5}});
      break;
  }
}

int legend_rows(const std::vector<LegendEntry>& entries, double width) {
  return lay_out_legend(entries, width, [](const LegendEntry&, double, int) {});
}

void draw_legend(SvgDocument& document, const std::vector<LegendEntry>& entries, SvgPoint corner,
                 double width) {
  lay_out_legend(entries, width, [&](const LegendEntry& entry, double x, int row) {
    const SvgPoint start{corner.x + x, corner.y + 8.0 + row * kLineHeight};
    document.open_group({{"class", entry.style.css_class}, {"color", entry.style.color}});
    if (entry.fill.empty()) {
      document.line(start, {start.x + kSampleWidth, start.y},
                    {{"stroke", "currentColor"},
                     {"stroke-width", "2"},
                     {"stroke-dasharray", entry.style.dash}});
      draw_marker(document, {start.x + kSampleWidth / 2.0, start.y}, entry.style);
    } else {
      document.rect({start.x + 4.0, start.y - 6.0}, kSampleWidth - 8.0, 12.0,
                    {{"fill", entry.fill}, {"stroke", "currentColor"}});
    }
    document.close_group();
    document.text({start.x + kSampleWidth + 6.0, start.y + 4.0},
                  clip_middle(entry.name, width - kSampleWidth - 6.0, kFontSize),
                  text_style("k-ink"));
  });
}

}  // namespace kitchen::report
