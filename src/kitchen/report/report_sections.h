#pragma once

#include "kitchen/report/html_report.h"
#include "kitchen/report/run_summary.h"

#include <string>
#include <vector>

/// The sections of the page, in its order. A section without content is left out of the page.
namespace kitchen::report {

struct ReportSection {
  std::string id;
  std::string title;
  std::string content_html;
};

/// Who ends where, and by how much they differ from the first run; of many runs only the best.
/// Plain text.
std::string headline(const std::vector<RunSummary>& runs);

ReportSection results_section(const std::vector<RunSummary>& runs);
ReportSection loss_section(const std::vector<RunSummary>& runs, const ReportOptions& options);
ReportSection course_section(const std::vector<RunSummary>& runs);
ReportSection quantization_section(const std::vector<RunSummary>& runs);
ReportSection time_section(const std::vector<RunSummary>& runs);
ReportSection samples_section(const std::vector<RunSummary>& runs);
ReportSection settings_section(const std::vector<RunSummary>& runs);
ReportSection glossary_section();
ReportSection files_section(const std::vector<RunSummary>& runs);

}  // namespace kitchen::report
