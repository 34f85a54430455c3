#include "kitchen/analysis/inspect_input.h"
#include "kitchen/analysis/quantized_copies.h"
#include "kitchen/analysis/tensor_inspection.h"
#include "kitchen/app/commands.h"
#include "kitchen/app/device.h"
#include "kitchen/app/exit_status.h"
#include "kitchen/base/error.h"
#include "kitchen/train/durable_file.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace kitchen::app {

namespace {

struct InspectFlags {
  analysis::InspectInput input;
  std::string scheme;
  std::uint64_t offset = 0;
  std::string dump;
  bool force = false;
  std::string svg;
  std::string json;
  bool list_schemes = false;
};

int inspect(const InspectFlags& flags) {
  if (flags.list_schemes) {
    fmt::print("{}", analysis::list_schemes());
    return kDone;
  }
  if (flags.scheme.empty()) {
    throw ValueError("--scheme is missing; --list-schemes lists the known ones");
  }
  if (flags.force && flags.dump.empty()) {
    throw ValueError("--force only lets --dump overwrite a file; give --dump or leave it out");
  }
  const ContextPtr context = make_context("cpu", 0);
  const analysis::InspectedMatrix matrix = analysis::read_input(flags.input, context);
  const analysis::RoundingKey key{flags.input.seed, flags.offset};
  const analysis::QuantizedCopies copies =
      analysis::quantize_both(matrix.values, flags.scheme, key);
  const analysis::Inspection inspection =
      analysis::inspect_copies(matrix.values, matrix.description, copies);
  if (!flags.svg.empty()) {
    train::replace_file(flags.svg, analysis::error_picture(inspection).to_string());
  }
  if (!flags.dump.empty()) analysis::dump_copies(flags.dump, copies, key, flags.force);
  if (flags.json == "-") {
    fmt::print("{}", analysis::to_json(inspection));
    return kDone;
  }
  fmt::print("{}", analysis::to_text(inspection));
  if (!flags.json.empty()) train::replace_file(flags.json, analysis::to_json(inspection));
  return kDone;
}

/// The parser would wrap a negative number round to a large one.
std::string refuse_sign(const std::string& text) {
  return text.find('-') == std::string::npos ? ""
                                             : "'" + text + "' is negative, expected 0 or more";
}

void add_input_flags(CLI::App& command, InspectFlags& flags) {
  analysis::InspectInput& input = flags.input;
  command.add_option("--input", input.path, "a .npy file, or a *.safetensors file with --tensor");
  command.add_option("--tensor", input.tensor, "name of a tensor in the safetensors file");
  command.add_option("--input-dtype", input.input_dtype,
                     "fp32, fp16 or bf16; a .npy file holds bf16 as the bits in uint16");
  command.add_option("--distribution", input.distribution,
                     "made-up numbers: normal, uniform, lognormal, laplace or outliers, in bf16 "
                     "if --input-dtype does not say otherwise");
  command.add_option("--rows", input.rows, "of a distribution")->capture_default_str();
  command.add_option("--cols", input.cols, "of a distribution")->capture_default_str();
  command.add_option("--seed", input.seed, "of a distribution, and key of stochastic rounding")
      ->check(&refuse_sign)
      ->capture_default_str();
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command =
      app.add_subcommand("inspect", "quantize a tensor under one scheme and show the error");
  add_input_flags(*command, *flags);
  command->add_option("--scheme", flags->scheme, "such as mxfp8_e4m3_row; see --list-schemes");
  command->add_option("--offset", flags->offset, "of stochastic rounding in its random stream")
      ->check(&refuse_sign)
      ->capture_default_str();
  command->add_option("--dump", flags->dump,
                      "write codes and scales of both copies to this safetensors file");
  command->add_flag("--force", flags->force, "let --dump overwrite an existing file");
  command->add_option("--svg", flags->svg, "draw error against magnitude to this file");
  command->add_option("--json", flags->json, "write the figures to this file; - prints them");
  command->add_flag("--list-schemes", flags->list_schemes, "list the schemes and stop");
  command->callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace kitchen::app
