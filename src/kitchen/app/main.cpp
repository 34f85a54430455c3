#include "kitchen/app/cpu_level.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/app/program.h"

int main(int argc, char** argv) {
  if (!kitchen::app::check_cpu_level()) return kitchen::app::kBadInput;
  return kitchen::app::run_program(argc, argv);
}
