#include "kitchen/train/training_state.h"

#include "kitchen/base/error.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace kitchen::train {

namespace {

using Json = nlohmann::ordered_json;

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double double_of(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Json rng_to_json(const GeneratorState& state) {
  return Json::array({state.seed, state.offset});
}

GeneratorState rng_from_json(const Json& json) {
  return {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>()};
}

TrainingState read_fields(const Json& json) {
  TrainingState state;
  state.consumed_samples = json.at("consumed_samples").get<std::int64_t>();
  state.consumed_tokens = json.at("consumed_tokens").get<std::int64_t>();
  state.nan_iterations = json.at("nan_iterations").get<std::int64_t>();
  state.interval_loss = double_of(json.at("interval_loss_bits").get<std::uint64_t>());
  state.interval_tokens = json.at("interval_tokens").get<std::int64_t>();
  state.data_checksum = json.at("data_checksum").get<std::string>();
  state.default_rng = rng_from_json(json.at("rng").at("default"));
  for (const auto& [name, rng] : json.at("rng").at("tracker").items()) {
    state.tracker_rng[name] = rng_from_json(rng);
  }
  return state;
}

}  // namespace

void TrainingState::capture_rng() {
  default_rng = default_generator();
  tracker_rng = get_cuda_rng_tracker().get_states();
}

void TrainingState::install_rng() const {
  default_generator() = default_rng;
  get_cuda_rng_tracker().set_states(tracker_rng);
}

std::string to_json(const TrainingState& state) {
  Json json;
  json["consumed_samples"] = state.consumed_samples;
  json["consumed_tokens"] = state.consumed_tokens;
  json["nan_iterations"] = state.nan_iterations;
  // JSON has no NaN, and one skipped step must not make a checkpoint unreadable.
  json["interval_loss_bits"] = bits_of(state.interval_loss);
  json["interval_tokens"] = state.interval_tokens;
  json["data_checksum"] = state.data_checksum;
  json["rng"]["default"] = rng_to_json(state.default_rng);
  json["rng"]["tracker"] = Json::object();
  for (const auto& [name, rng] : state.tracker_rng) json["rng"]["tracker"][name] = rng_to_json(rng);
  return json.dump();
}

TrainingState training_state_from_json(const std::string& json) {
  try {
    return read_fields(Json::parse(json));
  } catch (const Json::exception& error) {
    throw ValueError(std::string("checkpoint: its training state is not one of this program: ") +
                     error.what() + "; start a new run in another --run-dir");
  }
}

}  // namespace kitchen::train
