#include "kitchen/analysis/quantized_copies.h"
#include "kitchen/base/error.h"
#include "kitchen/formats/packing.h"
#include "kitchen/train/safetensors.h"
#include "support/expect_error.h"
#include "support/golden_file.h"
#include "support/temporary_file.h"
#include "support/values.h"

#include <gtest/gtest.h>

#include <set>

namespace kitchen {
namespace {

using testing::big_endian_bytes;
using testing::fnv_of;
using testing::golden;
using testing::hex8;

constexpr analysis::RoundingKey kKey{0x0123456789ABCDEFu, 7};

void expect_bytes(const nlohmann::json& entry, const std::string& key, const Tensor& tensor) {
  const std::vector<std::uint8_t> bytes = big_endian_bytes(tensor);
  if (entry.contains(key)) {
    EXPECT_EQ(bytes, hex8(entry.at(key))) << key;
  } else {
    EXPECT_EQ(fnv_of(bytes), entry.at(key + "_fnv").get<std::string>()) << key;
  }
}

/// Quantizes and writes the input of a case as the program does, and reads the file back.
void expect_dump(const ContextPtr& context, const nlohmann::json& entry) {
  const std::string scheme = entry.at("scheme");
  SCOPED_TRACE(entry.at("input").get<std::string>() + " " + scheme);
  const testing::TemporaryFile place("note.txt", "");
  const std::string path = place.folder() + "/dump.safetensors";
  const Tensor x = testing::golden_input(context, entry.at("input"));
  analysis::dump_copies(path, analysis::quantize_both(x, scheme, kKey), kKey, false);
  const auto file = train::SafetensorsFile::open(path);
  const std::string side = analysis::describes_transpose(scheme) ? "columnwise" : "rowwise";
  const Tensor codes = file.read(side + "_codes", context);
  Shape shape = entry.at("shape").get<Shape>();
  EXPECT_EQ(file.metadata().at(side + "_codes.shape"), to_string(shape));
  if (entry.at("packed4").get<int>() != 0) shape.back() = formats::packed4_cols(shape.back());
  EXPECT_EQ(codes.shape(), shape);
  expect_bytes(entry, "codes", codes);
  const Tensor scale = file.read(side + "_scale", context);
  EXPECT_EQ(scale.shape(), entry.at("scale_shape").get<Shape>());
  expect_bytes(entry, "scale", scale);
  EXPECT_TRUE(file.find("columnwise_codes") != nullptr && file.find("rowwise_scale") != nullptr);
  if (entry.contains("amax")) expect_bytes(entry, "amax", file.read("amax", context));
}

// labels: analysis.inspect app.inspect golden
TEST(GoldenDump, EveryCaseOfTheFileIsDumpedByteForByte) {
  const ContextPtr context = testing::poisoned_context();
  std::set<std::string> schemes;
  for (const auto& entry : golden().at("quantize")) {
    expect_dump(context, entry);
    schemes.insert(entry.at("scheme").get<std::string>());
  }
  EXPECT_EQ(schemes.size(), 25u);
}

// labels: analysis.inspect
TEST(GoldenDump, ColumnwiseIsTheRowwiseCopyOfTheTranspose) {
  const ContextPtr context = testing::poisoned_context();
  const Tensor x = testing::golden_input(context, "C_ragged");
  for (const char* scheme : {"tensor_e4m3", "b1x128_e4m3_pow2", "mxfp8_e4m3_row", "nvfp4_2d"}) {
    const auto copies = analysis::quantize_both(x, scheme, kKey);
    const auto turned = analysis::quantize_both(x.transpose(0, 1), scheme, kKey);
    EXPECT_EQ(big_endian_bytes(copies.columnwise.codes), big_endian_bytes(turned.rowwise.codes));
    EXPECT_EQ(big_endian_bytes(copies.columnwise.scale_inv),
              big_endian_bytes(turned.rowwise.scale_inv));
  }
}

// labels: analysis.inspect
TEST(GoldenDump, AnExistingFileIsKeptAndBadCallsAreRefused) {
  const ContextPtr context = testing::poisoned_context();
  const Tensor x = testing::golden_input(context, "B_normal");
  const auto copies = analysis::quantize_both(x, "nvfp4_row", kKey);
  const testing::TemporaryFile taken("dump.safetensors", "mine");
  EXPECT_TRUE(
      testing::throws<ValueError>([&] { analysis::dump_copies(taken.path(), copies, kKey, false); },
                                  {taken.path(), "exists", "--force"}));
  analysis::dump_copies(taken.path(), copies, kKey, true);
  EXPECT_NO_THROW((void)train::SafetensorsFile::open(taken.path()));
  EXPECT_TRUE(testing::throws<ValueError>([&] { analysis::quantize_both(x, "mxfp8_row", kKey); },
                                          {"--scheme 'mxfp8_row'", "--list-schemes"}));
  EXPECT_TRUE(testing::throws<ValueError>(
      [&] {
        analysis::quantize_both(x, "nvfp4_row_sr", {1, std::uint64_t{1} << 56});
      },
      {"--offset", "2^56"}));
}

}  // namespace
}  // namespace kitchen
