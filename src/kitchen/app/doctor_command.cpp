#include "kitchen/analysis/machine.h"
#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/backends/available_backends.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kitchen::app {

namespace {

struct DoctorFlags {
  analysis::MachineQuestions questions;
  std::string backend = "auto";
  bool json = false;
};

analysis::Finding cuda() {
  for (const AvailableBackend& backend : available_backends()) {
    if (backend.name != "cuda") continue;
    const std::string reason = backend.why_unusable();
    if (reason.empty()) return {"CUDA", backend.describe(), analysis::Health::good, {}};
    return {"CUDA", reason + ": training runs on the CPU", analysis::Health::note, {}};
  }
  return {"CUDA", "not in this build: training runs on the CPU", analysis::Health::note, {}};
}

int examine(const DoctorFlags& flags) {
  std::vector<analysis::Finding> findings = analysis::examine_machine(flags.questions);
  findings.push_back(cuda());
  fmt::print("{}", flags.json ? analysis::to_json(findings) : analysis::to_text(findings));
  std::fflush(stdout);
  (void)make_context(flags.backend,
                     0);  // a device that cannot be used ends the program with its status
  return kDone;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command =
      app.add_subcommand("doctor", "what this machine has, and what will not work, and why");
  command->add_option("--backend", flags->backend, "device to ask for: auto, cpu or cuda")
      ->capture_default_str();
  command->add_option("--data", flags->questions.data_path, "text to look for")
      ->capture_default_str();
  command->add_option("--run-dir", flags->questions.run_dir, "where runs would be written")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, &action] { action = [flags] { return examine(*flags); }; });
}

}  // namespace kitchen::app
