#include "app/program.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>

namespace kitchen::testing {
namespace {

/// A .npy file of version 1 whose data are `data` as they stand in memory.
template <class T>
std::string npy(const std::string& descr, const std::string& shape, const std::vector<T>& data,
                const std::string& order = "False") {
  const std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  std::string text("\x93NUMPY\x01\x00", 8);
  text.push_back(static_cast<char>(header.size()));
  text.push_back('\0');
  text += header;
  return text.append(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T));
}

ChildResult inspect(const std::string& bytes, const Words& more = {}) {
  const TemporaryFile file("x.npy", bytes);
  return run_program(Words{"inspect", "--input", file.path(), "--scheme", "tensor_e4m3"} + more);
}

const std::vector<float> kValues{448.0f, 1.0f, -2.0f, 0.0f, 1.0625f, 1e-9f};

// labels: app.inspect
TEST(InspectCommand, FiguresAreThoseOfTheClosedForm) {
  const ChildResult result = inspect(npy("<f4", "(2, 3)", kValues), {"--json", "-"});
  ASSERT_TRUE(ends_with(result, 0, {}));
  const auto json = nlohmann::json::parse(result.out);
  // amax 448 gives scale 1, so 1.0625 is a tie that falls to 1 and 1e-9 becomes 0.
  const double signal = 448.0 * 448.0 + 1.0 + 4.0 + 1.0625 * 1.0625;
  EXPECT_NEAR(json.at("sqnr_db").get<double>(), 10 * std::log10(signal / (0.0625 * 0.0625)), 1e-6);
  EXPECT_EQ(json.at("max_error").get<double>(), 0.0625);
  EXPECT_NEAR(json.at("mean_error").get<double>(), 0.0625 / 6, 1e-9);
  EXPECT_NEAR(json.at("underflowed").get<double>(), 1.0 / 6, 1e-12);
  EXPECT_EQ(json.at("saturated").get<double>(), 0.0);
  EXPECT_EQ(json.at("scales").at("by_octave").at("0").get<int>(), 1);
}

// labels: app.inspect
TEST(InspectCommand, BitsOfBf16AreReadFromSixteenBitIntegers) {
  const std::string bytes = npy("<u2", "(2,)", std::vector<std::uint16_t>{0x3F80, 0xC000});
  const ChildResult result = inspect(bytes, {"--input-dtype", "bf16"});
  EXPECT_TRUE(ends_with(result, 0, {}));
  EXPECT_NE(result.out.find("[1, 2] bfloat16"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("scales        1 of per_tensor"), std::string::npos) << result.out;
  EXPECT_TRUE(ends_with(inspect(bytes), 2, {"x.npy", "--input-dtype bf16"}));
}

// labels: app.inspect
TEST(InspectCommand, FilesThatCannotBeReadSayWhyAndWhatToDo) {
  const std::string good = npy("<f4", "(2, 3)", kValues);
  EXPECT_TRUE(ends_with(inspect(good.substr(0, good.size() - 1)), 2, {"23 bytes", "24", "cut"}));
  EXPECT_TRUE(ends_with(inspect(good.substr(0, 20)), 2, {"cut inside its header"}));
  EXPECT_TRUE(ends_with(inspect(""), 2, {"no .npy file"}));
  EXPECT_TRUE(ends_with(inspect(good + "more"), 2, {"28 bytes", "one array"}));
  EXPECT_TRUE(ends_with(inspect(npy("<f4", "(2, 3)", kValues, "True")), 2,
                        {"Fortran order", "ascontiguousarray"}));
  EXPECT_TRUE(ends_with(inspect(npy("<f8", "(3,)", kValues)), 2, {"'<f8'", "astype('float32')"}));
  EXPECT_TRUE(ends_with(inspect(npy(">f4", "(6,)", kValues)), 2, {"big endian"}));
  EXPECT_TRUE(ends_with(inspect(npy("<f4", "(2, -3)", kValues)), 2, {"shape"}));
  EXPECT_TRUE(
      ends_with(inspect(good, {"--input-dtype", "bf16"}), 2, {"float32", "bfloat16", "'<u2'"}));
  EXPECT_TRUE(ends_with(inspect(good, {"--input-dtype", "int4"}), 2, {"'int4'", "fp32, fp16"}));
  EXPECT_TRUE(
      ends_with(run_program({"inspect", "--distribution", "normle", "--scheme", "int8_row"}), 2,
                {"'normle'", "did you mean \"normal\""}));
  EXPECT_TRUE(ends_with(run_program({"inspect", "--scheme", "int8_row"}), 2, {"--input"}));
  EXPECT_TRUE(ends_with(inspect(good, {"--seed", "-1"}), 2, {"--seed", "negative"}));
}

// labels: app.inspect
TEST(InspectCommand, ADumpIsATensorFileThatInspectReadsAndNeverOverwrites) {
  const TemporaryFile place("x.npy", npy("<f4", "(2, 3)", kValues));
  const std::string dump = place.folder() + "/d.safetensors";
  const std::string svg = place.folder() + "/e.svg";
  const Words words{"inspect", "--input", place.path(), "--scheme", "nvfp4_row", "--dump", dump};
  EXPECT_TRUE(ends_with(run_program(words + Words{"--svg", svg}), 0, {}));
  EXPECT_TRUE(std::filesystem::exists(svg));
  EXPECT_TRUE(ends_with(run_program(words), 2, {dump, "exists", "--force"}));
  EXPECT_TRUE(ends_with(run_program(words + Words{"--force"}), 0, {}));
  const Words reread{"inspect", "--input", dump, "--scheme", "tensor_e4m3"};
  EXPECT_TRUE(ends_with(run_program(reread), 2, {"--tensor is missing", "rowwise_codes", "amax"}));
  EXPECT_TRUE(ends_with(run_program(reread + Words{"--tensor", "amax"}), 0, {}));
  EXPECT_FALSE(std::filesystem::exists(dump + ".partial"));
}

// labels: app.inspect
TEST(InspectCommand, APictureNeedsErrorsOfSingleElementsAndIsRefusedBeforeTheDump) {
  const TemporaryFile place("x.npy", npy("<f4", "(2, 3)", kValues));
  const std::string dump = place.folder() + "/d.safetensors";
  EXPECT_TRUE(ends_with(run_program({"inspect", "--input", place.path(), "--scheme", "nvfp4_t_rht",
                                     "--dump", dump, "--svg", place.folder() + "/e.svg"}),
                        2, {"--svg", "Hadamard"}));
  EXPECT_FALSE(std::filesystem::exists(dump));
}

}  // namespace
}  // namespace kitchen::testing
