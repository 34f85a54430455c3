#include "kitchen/app/commands.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/report/html_report.h"
#include "kitchen/report/run_summary.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace kitchen::app {

namespace {

struct ReportFlags {
  std::vector<std::string> folders;
  std::string output = "report.html";
  report::ReportOptions options;
};

int write_report(const ReportFlags& flags) {
  std::vector<report::RunSummary> runs;
  for (const std::string& folder : flags.folders) runs.push_back(report::read_run(folder));
  const std::filesystem::path parent = std::filesystem::path(flags.output).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent);
  report::write_report(runs, flags.output, flags.options);
  fmt::print("report     {}\n", flags.output);
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "one page that compares run folders");
  command->add_option("runs", flags->folders, "run folders; the first one is compared with")->required();
  command->add_option("--output", flags->output, "HTML file to write")->capture_default_str();
  command->add_option("--title", flags->options.title, "heading of the page");
  command->add_flag("--log-loss", flags->options.log_loss, "logarithmic loss axes");
  command->callback([flags, &action] { action = [flags] { return write_report(*flags); }; });
}

}  // namespace kitchen::app
