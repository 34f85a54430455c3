#include "kitchen/analysis/inspect_input.h"

#include "kitchen/analysis/npy.h"
#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"
#include "kitchen/base/rng.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/train/safetensors.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

namespace kitchen::analysis {

namespace {

using Draw = double (*)(const Rng& rng, std::uint64_t index);

struct Distribution {
  const char* name;
  Draw draw;
};

/// Words 4i and 4i + 1 make the normal number i, word 4i + 2 decides what else happens to it.
double normal(const Rng& rng, std::uint64_t i) {
  return normal_from_words(rng.word(4 * i), rng.word(4 * i + 1));
}

double uniform(const Rng& rng, std::uint64_t i) {
  return 2.0 * static_cast<double>(rng.uniform(4 * i)) - 1.0;
}

double lognormal(const Rng& rng, std::uint64_t i) {
  return std::exp(normal(rng, i));
}

double laplace(const Rng& rng, std::uint64_t i) {
  const double magnitude = -std::log((static_cast<double>(rng.word(4 * i)) + 1.0) * 0x1p-32);
  return (rng.word(4 * i + 2) & 1u) != 0 ? -magnitude : magnitude;
}

double outliers(const Rng& rng, std::uint64_t i) {
  return normal(rng, i) * ((rng.word(4 * i + 2) & 255u) == 0 ? 64.0 : 1.0);
}

constexpr std::array<Distribution, 5> kDistributions{{{"normal", &normal},
                                                      {"uniform", &uniform},
                                                      {"lognormal", &lognormal},
                                                      {"laplace", &laplace},
                                                      {"outliers", &outliers}}};

Draw find_distribution(const std::string& name) {
  std::vector<std::string> names;
  for (const Distribution& distribution : kDistributions) {
    if (name == distribution.name) return distribution.draw;
    names.emplace_back(distribution.name);
  }
  throw ValueError(fmt::format("--distribution is '{}', expected one of {}. {}", name,
                               join_names(names), did_you_mean(name, names)));
}

InspectedMatrix draw_matrix(const InspectInput& input, const std::optional<DType>& dtype,
                            const ContextPtr& context) {
  const Draw draw = find_distribution(input.distribution);
  if (input.rows < 1 || input.cols < 1 || input.rows > (1ll << 31) / input.cols) {
    throw ValueError(
        fmt::format("--rows {} --cols {}: expected positive sizes with a product of at most 2^31",
                    input.rows, input.cols));
  }
  // Usage 128 of the counter: stochastic rounding has 0 and 1, so a seed serves both without
  // overlap.
  const Rng rng{input.seed, std::uint64_t{128} << 56};
  std::vector<float> values(static_cast<std::size_t>(input.rows * input.cols));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(draw(rng, i));
  const DType wanted = dtype.value_or(DType::bfloat16);
  const Tensor drawn = Tensor::from_vector(context, {input.rows, input.cols}, values);
  return {ops::cast(drawn, wanted),
          fmt::format("{} distribution, seed {}", input.distribution, input.seed)};
}

Tensor read_safetensors(const InspectInput& input, const std::optional<DType>& dtype,
                        const ContextPtr& context) {
  const auto file = train::SafetensorsFile::open(input.path);
  if (file.find(input.tensor) == nullptr) {
    std::string known;
    for (const train::SafetensorsEntry& entry : file.entries()) {
      known +=
          fmt::format("\n  {} {} {}", entry.name, to_string(entry.shape), to_string(entry.dtype));
    }
    throw KeyError(fmt::format("{}: {}; it holds{}", input.path,
                               input.tensor.empty()
                                   ? std::string("--tensor is missing")
                                   : fmt::format("--tensor '{}' is not in it", input.tensor),
                               known.empty() ? " no tensor" : known));
  }
  const Tensor tensor = file.read(input.tensor, context);
  if (dtype && *dtype != tensor.dtype()) {
    throw ValueError(fmt::format("{}: '{}' is {}, --input-dtype asks for {}; leave the flag out",
                                 input.path, input.tensor, to_string(tensor.dtype()),
                                 to_string(*dtype)));
  }
  return tensor;
}

bool is_safetensors(const std::string& path) {
  return std::filesystem::path(path).extension() == ".safetensors";
}

Tensor as_matrix(const Tensor& tensor) {
  return tensor.rank() >= 2 ? tensor : tensor.view({1, tensor.numel()});
}

}  // namespace

InspectedMatrix read_input(const InspectInput& input, const ContextPtr& context) {
  if (input.path.empty() == input.distribution.empty()) {
    throw ValueError(input.path.empty()
                         ? "--input or --distribution is missing: give a .npy or .safetensors "
                           "file, or a distribution such as normal"
                         : "--input and --distribution exclude each other; choose one");
  }
  std::optional<DType> dtype;
  if (!input.input_dtype.empty()) dtype = input_dtype_from_string(input.input_dtype);
  if (!input.distribution.empty()) return draw_matrix(input, dtype, context);
  if (is_safetensors(input.path)) {
    return {as_matrix(read_safetensors(input, dtype, context)),
            fmt::format("{} of {}", input.tensor, input.path)};
  }
  if (!input.tensor.empty()) {
    throw ValueError(fmt::format("--tensor {}: only a *.safetensors file has names, --input is {}",
                                 input.tensor, input.path));
  }
  return {as_matrix(read_npy(input.path, dtype, context)), input.path};
}

}  // namespace kitchen::analysis
