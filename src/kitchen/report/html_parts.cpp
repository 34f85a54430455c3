#include "kitchen/report/html_parts.h"

#include "kitchen/report/xml_escape.h"

#include <fmt/format.h>

namespace kitchen::report {
namespace {

constexpr double kWideChart = 860.0;
constexpr double kNarrowChart = 350.0;

std::string html_cell(const HtmlCell& cell) {
  std::string css_class = cell.is_number ? "number" : "";
  if (cell.is_marked) css_class += css_class.empty() ? "marked" : " marked";
  const std::string attributes = (cell.is_row_header ? " scope=\"row\"" : "") +
                                 (css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class));
  const char* tag = cell.is_row_header ? "th" : "td";
  return fmt::format("<{}{}>{}</{}>", tag, attributes, xml_escape(cell.text), tag);
}

}  // namespace

std::string html_head(const std::string& title) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'\"/>\n"
         "<title>" +
         xml_escape(title) + "</title>\n<style>" + page_style() + "</style>\n</head>\n";
}

std::string html_section(const std::string& id, const std::string& title,
                         const std::string& content_html) {
  return fmt::format(
      "<section id=\"{}\" tabindex=\"-1\" aria-labelledby=\"{}-title\">\n<h2 "
      "id=\"{}-title\">{}</h2>\n"
      "{}</section>\n",
      id, id, id, xml_escape(title), content_html);
}

std::string html_paragraph(const std::string& text) {
  return "<p>" + xml_escape(text) + "</p>\n";
}

std::string html_table(const HtmlTable& table) {
  std::string out = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n"
      "<caption><span>{}</span></caption>\n<thead><tr>",
      xml_escape(table.caption), xml_escape(table.caption));
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const bool is_number =
        !table.rows.empty() && i < table.rows[0].size() && table.rows[0][i].is_number;
    out += fmt::format("<th scope=\"col\"{}>{}</th>", is_number ? " class=\"number\"" : "",
                       xml_escape(table.header[i]));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<HtmlCell>& row : table.rows) {
    out += "<tr>";
    for (const HtmlCell& cell : row) out += html_cell(cell);
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

std::string html_details(const std::string& summary, const std::string& content_html) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", xml_escape(summary),
                     content_html);
}

std::string html_figure(const std::string& id,
                        const std::function<SvgDocument(double width, const std::string& id)>& draw,
                        const std::string& reading) {
  std::string out =
      fmt::format("<figure id=\"{}\" tabindex=\"0\" aria-labelledby=\"{}-caption\">\n", id, id);
  out += "<div class=\"wide\">" + draw(kWideChart, id + "-wide").to_inline_string() + "</div>\n";
  out +=
      "<div class=\"narrow\">" + draw(kNarrowChart, id + "-narrow").to_inline_string() + "</div>\n";
  return out + fmt::format(
                   "<figcaption id=\"{}-caption\"><strong>How to read it:</strong> "
                   "{}</figcaption>\n</figure>\n",
                   id, xml_escape(reading));
}

}  // namespace kitchen::report
