#pragma once

#include "kitchen/report/run_summary.h"

#include <string>
#include <vector>

namespace kitchen::report {

struct ReportOptions {
  std::string title;      ///< heading of the page; empty: made of the runs' names
  bool log_loss = false;  ///< logarithmic loss axes
};

/// One HTML page about `runs`, compared with the first of them.
///
/// The page stands alone: style and figures are inside, nothing is fetched, no script runs. Figures
/// are explained for learners, every figure has its numbers as a table, and terms have a glossary.
/// The same runs give the same bytes: no clock and no machine name enters.
/// @throws ValueError if `runs` is empty.
std::string render_report(const std::vector<RunSummary>& runs, const ReportOptions& options = {});

/// Renders `runs` to the file `path`. A reader never sees half a page: it is written beside and
/// renamed.
/// @throws IOError    if the file cannot be written; nothing is left behind.
/// @throws ValueError if `runs` is empty.
void write_report(const std::vector<RunSummary>& runs, const std::string& path,
                  const ReportOptions& options = {});

}  // namespace kitchen::report
