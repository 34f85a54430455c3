#pragma once

#include "kitchen/report/svg.h"

#include <functional>
#include <string>
#include <vector>

/// Pieces of an HTML page. Arguments named `*_html` are markup; all others are plain text and get
/// escaped.
namespace kitchen::report {

struct HtmlCell {
  std::string text;
  bool is_number = false;  ///< set in line at the right
  bool is_marked = false;  ///< on a marked ground
  bool is_row_header = false;
};

struct HtmlTable {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<HtmlCell>> rows;
};

/// Everything before `<body>`: title, style, and a policy that forbids to fetch anything.
std::string html_head(const std::string& title);

/// A section with its heading, the target of links to `#id`.
std::string html_section(const std::string& id, const std::string& title,
                         const std::string& content_html);

std::string html_paragraph(const std::string& text);

/// The table in a box of its own that scrolls sideways and takes the keyboard's focus.
std::string html_table(const HtmlTable& table);

/// A part that opens on demand.
std::string html_details(const std::string& summary, const std::string& content_html);

/// A figure for wide and for narrow pages, drawn by `draw(width, id)` for each, so that text keeps
/// its size on a phone.
/// @param reading How to read the figure, in words; the caption, behind "How to read it:".
std::string html_figure(const std::string& id,
                        const std::function<SvgDocument(double width, const std::string& id)>& draw,
                        const std::string& reading);

/// Style sheet of the page: light, dark, print and phone; replaces the colours of inlined charts.
std::string page_style();

}  // namespace kitchen::report
