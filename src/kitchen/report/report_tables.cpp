#include "kitchen/report/html_parts.h"
#include "kitchen/report/report_figures.h"
#include "kitchen/report/report_numbers.h"
#include "kitchen/report/report_sections.h"
#include "kitchen/report/xml_escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kitchen::report {
namespace {

std::string quantization_table(const RunSummary& run) {
  HtmlTable table;
  table.caption = "Quantization error of " + run.name;
  table.header = {"layer", "operand", "GEMM", "format", "SQNR (dB)", "saturated (%)", "underflowed (%)", "not finite",
                  "elements"};
  for (const QuantizationError& error : run.quantization) {
    const bool is_broken = error.non_finite > 0;
    table.rows.push_back({{error.module, false, false, true},
                          {error.operand, false, false, false},
                          {error.gemm, false, false, false},
                          {error.scheme, false, false, false},
                          {number_text(error.sqnr_db, 2), true, false, false},
                          {number_text(100.0 * error.saturated, 3), true, false, false},
                          {number_text(100.0 * error.underflowed, 3), true, false, false},
                          {count_text(error.non_finite), true, is_broken, false},
                          {count_text(error.elements), true, false, false}});
  }
  return html_table(table);
}

/// The formats in use, the worst cell and, if there are any, values that are not finite. Plain text.
std::string quantization_reading(const RunSummary& run) {
  std::set<std::string> schemes;
  const QuantizationError* worst = nullptr;
  std::int64_t non_finite = 0;
  std::vector<std::string> modules;
  for (const QuantizationError& error : run.quantization) {
    schemes.insert(error.scheme);
    non_finite += error.non_finite;
    modules.push_back(error.module);
    if (error.sqnr_db && (worst == nullptr || *error.sqnr_db < *worst->sqnr_db)) worst = &error;
  }
  std::string list;
  for (const std::string& scheme : schemes) list += (list.empty() ? "" : ", ") + scheme;
  std::string text =
      "One row a layer, one column a use of an operand in a GEMM; the number is the SQNR in decibels, "
      "larger is better, darker cells have more error. Formats: " + list + ".";
  if (worst != nullptr) {
    text += fmt::format(" Most error: {} of {} in {}, {:.1f} dB.", worst->operand, worst->module, worst->gemm,
                        *worst->sqnr_db);
  }
  if (non_finite > 0) text += fmt::format(" {} elements were not finite before quantization.", count_text(non_finite));
  const std::string prefix = common_prefix(modules);
  if (!prefix.empty()) text += " Names of layers begin with " + prefix + ", left out here.";
  return text;
}

const std::string* find_setting(const RunSummary& run, const std::string& path) {
  for (const auto& setting : run.settings) {
    if (setting.first == path) return &setting.second;
  }
  return nullptr;
}

std::vector<HtmlCell> setting_row(const std::vector<RunSummary>& runs, const std::string& path, bool differs) {
  std::vector<HtmlCell> row = {{path, false, false, true}};
  if (runs.size() > 1) row.push_back({differs ? "differs" : "same", false, false, false});
  for (const RunSummary& run : runs) {
    const std::string* value = find_setting(run, path);
    row.push_back({value == nullptr ? "–" : *value, false, differs, false});
  }
  return row;
}

}  // namespace

ReportSection quantization_section(const std::vector<RunSummary>& runs) {
  std::string html;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunSummary& run = runs[i];
    if (run.quantization.empty()) continue;
    const HeatMap map = quantization_map(run);
    const auto draw = [&](double width, const std::string& id) {
      HeatMap sized = map;
      sized.width = width;
      sized.id = id;
      return heat_map(sized);
    };
    html += html_figure(fmt::format("quantization-{}", i + 1), draw, quantization_reading(run)) +
            html_details("The same as a table, with saturation and underflow", quantization_table(run));
  }
  return {"quantization", "Quantization error by layer", html};
}

ReportSection settings_section(const std::vector<RunSummary>& runs) {
  std::set<std::string> paths;
  for (const RunSummary& run : runs) {
    for (const auto& setting : run.settings) paths.insert(setting.first);
  }
  HtmlTable table;
  table.caption = runs.size() > 1 ? "Settings; those in which the runs differ come first and are marked" : "Settings";
  table.header = {"setting"};
  if (runs.size() > 1) table.header.emplace_back("runs");
  for (const RunSummary& run : runs) table.header.push_back(run.name);
  std::vector<std::vector<HtmlCell>> same;
  for (const std::string& path : paths) {
    const std::string* first = find_setting(runs[0], path);
    const bool differs = std::any_of(runs.begin(), runs.end(), [&](const RunSummary& run) {
      const std::string* value = find_setting(run, path);
      return (value == nullptr) != (first == nullptr) || (value != nullptr && *value != *first);
    });
    (differs ? table.rows : same).push_back(setting_row(runs, path, differs));
  }
  table.rows.insert(table.rows.end(), same.begin(), same.end());
  return {"settings", "Settings", paths.empty() ? "" : html_table(table)};
}

ReportSection files_section(const std::vector<RunSummary>& runs) {
  std::string html = html_paragraph("All numbers and figures come from these files of the run folders:") + "<ul>\n";
  for (const RunSummary& run : runs) {
    for (const RunFile& file : run.files) {
      html += fmt::format("<li><code>{}/{}</code> ({})</li>\n", xml_escape(run.name), xml_escape(file.name),
                          bytes_text(file.bytes));
    }
  }
  return {"files", "Files behind this page", html + "</ul>\n"};
}

}  // namespace kitchen::report
