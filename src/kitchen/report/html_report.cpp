#include "kitchen/report/html_report.h"

#include "kitchen/base/error.h"
#include "kitchen/report/html_parts.h"
#include "kitchen/report/report_sections.h"
#include "kitchen/report/xml_escape.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace kitchen::report {
namespace {

/// Gives runs of equal name a number, since charts and tables tell runs apart by name.
std::vector<RunSummary> with_distinct_names(std::vector<RunSummary> runs) {
  std::set<std::string> taken;
  for (RunSummary& run : runs) {
    const std::string name = run.name.empty() ? "run" : run.name;
    run.name = name;
    for (int i = 2; !taken.insert(run.name).second; ++i) run.name = fmt::format("{} ({})", name, i);
  }
  return runs;
}

std::string default_title(const std::vector<RunSummary>& runs) {
  if (runs.size() > 3) return fmt::format("{} training runs", runs.size());
  std::string title = runs.size() > 1 ? "Training runs: " : "Training run: ";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    title += (i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ") + runs[i].name;
  }
  return title;
}

std::string notes_html(const std::vector<RunSummary>& runs) {
  std::string items;
  for (const RunSummary& run : runs) {
    for (const std::string& note : run.notes) {
      items += fmt::format("<p>{}: {}</p>\n", xml_escape(run.name), xml_escape(note));
    }
  }
  return items.empty() ? "" : "<div class=\"notes\" role=\"note\">\n" + items + "</div>\n";
}

}  // namespace

std::string render_report(const std::vector<RunSummary>& given, const ReportOptions& options) {
  if (given.empty())
    throw ValueError("render_report: no run is given, expected at least one run folder");
  const std::vector<RunSummary> runs = with_distinct_names(given);
  const std::string title = options.title.empty() ? default_title(runs) : options.title;
  std::string links;
  std::string body;
  for (const ReportSection& section :
       {results_section(runs), loss_section(runs, options), course_section(runs),
        quantization_section(runs), time_section(runs), samples_section(runs),
        settings_section(runs), glossary_section(), files_section(runs)}) {
    if (section.content_html.empty()) continue;
    links +=
        fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, xml_escape(section.title));
    body += html_section(section.id, section.title, section.content_html);
  }
  return html_head(title) +
         "<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>" +
         xml_escape(title) + "</h1>\n<p class=\"lead\">" + xml_escape(headline(runs)) + "</p>\n" +
         notes_html(runs) + "<nav aria-label=\"Contents\">\n<ul>\n" + links +
         "</ul>\n</nav>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n" + body +
         "</main>\n</body>\n</html>\n";
}

void write_report(const std::vector<RunSummary>& runs, const std::string& path,
                  const ReportOptions& options) {
  const std::string page = render_report(runs, options);
  // The process id keeps two writers of one page out of each other's way.
  const std::string temporary = fmt::format("{}.{}.partial", path, ::getpid());
  std::error_code ignored;
  {
    std::ofstream file(temporary, std::ios::binary);
    file << page;
    file.flush();
    if (!file) {
      std::filesystem::remove(temporary, ignored);
      throw IOError(path +
                    ": cannot be written; check that its folder exists, is writable and has space");
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::filesystem::remove(temporary, ignored);
    throw IOError(fmt::format("{}: cannot be replaced: {}", path, error.message()));
  }
}

}  // namespace kitchen::report
