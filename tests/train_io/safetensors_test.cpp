#include "kitchen/train/safetensors.h"

#include "kitchen/base/error.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "train_io/temp_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace kitchen::train {
namespace {

using kitchen::testing::mentions;
using kitchen::testing::message_of;
using kitchen::testing::same_bits;
using kitchen::testing::slurp;
using kitchen::testing::spit;
using kitchen::testing::TempFolder;

/// A file with the given JSON header and `data_bytes` bytes behind it, without using the writer.
std::string raw_file(const std::string& json, std::size_t data_bytes) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(json.size() & 0xFF);
  file[1] = static_cast<char>(json.size() >> 8);
  return file + json + std::string(data_bytes, '\1');
}

Tensor iota(const ContextPtr& context, Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from_vector(context, std::move(shape), values);
}

/// A tensor of any dtype whose bytes run through all 256 values.
Tensor byte_pattern(const ContextPtr& context, Shape shape, DType dtype) {
  const Tensor tensor = Tensor::empty(context, std::move(shape), dtype);
  auto* bytes = static_cast<std::uint8_t*>(tensor.raw_data());
  for (std::int64_t i = 0; i < tensor.nbytes(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  return tensor;
}

// labels: train.Safetensors
TEST(Safetensors, BytesOnDiskAreThoseOfTheFormat) {
  const TempFolder folder;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = Tensor::from_vector(context, {2}, std::vector<float>{1.0f, -2.0f});
  const SavedFile saved = save_safetensors(folder / "x", {{"x", x}}, {});
  const std::string json = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string padding((8 - json.size() % 8) % 8, ' ');
  const std::string length = {static_cast<char>(json.size() + padding.size()), 0, 0, 0, 0, 0, 0, 0};
  const std::string data = {0, 0, '\x80', '\x3f', 0, 0, 0, '\xc0'};
  EXPECT_EQ(slurp(folder / "x"), length + json + padding + data);
  EXPECT_EQ(saved.bytes, static_cast<std::int64_t>(slurp(folder / "x").size()));
  EXPECT_EQ(saved.checksum, checksum_of_file(folder / "x"));
}

// labels: train.Safetensors
TEST(Safetensors, EveryDtypeComesBackWithTheSameBits) {
  const TempFolder folder;
  const ContextPtr context = reference::make_cpu_context();
  TensorsByName tensors;
  for (const DType dtype :
       {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2,
        DType::float8_e8m0, DType::int32, DType::int64, DType::uint8, DType::boolean}) {
    for (const Shape& shape : {Shape{13, 37}, Shape{1}, Shape{}, Shape{0, 5}}) {
      tensors.emplace_back(to_string(dtype) + to_string(shape),
                           byte_pattern(context, shape, dtype));
    }
  }
  save_safetensors(folder / "all", tensors, {{"k", "v \"quoted\" \n"}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "all");
  EXPECT_EQ(file.entries().size(), tensors.size());
  EXPECT_EQ(file.metadata(), (SafetensorsMetadata{{"k", "v \"quoted\" \n"}}));
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(same_bits(tensor, file.read(name, context))) << name;
    EXPECT_EQ(file.find(name)->begin % size_of(tensor.dtype()), 0) << name << " is misaligned";
  }
}

// labels: train.Safetensors
TEST(Safetensors, StridedTensorsArePacked) {
  const TempFolder folder;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = iota(context, {3, 5});
  save_safetensors(folder / "x", {{"x", x.transpose(0, 1)}}, {});
  const Tensor back = SafetensorsFile::open(folder / "x").read("x", context);
  EXPECT_EQ(back.shape(), (Shape{5, 3}));
  EXPECT_EQ(back.to_vector<float>()[1], 5.0f);
}

// labels: train.Safetensors
TEST(Safetensors, EqualTensorsGiveEqualBytesInAnyOrder) {
  const TempFolder folder;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor a = iota(context, {3});
  const Tensor b = byte_pattern(context, {7}, DType::uint8);
  save_safetensors(folder / "ab", {{"a", a}, {"b", b}}, {});
  save_safetensors(folder / "ba", {{"b", b}, {"a", a}}, {});
  EXPECT_EQ(slurp(folder / "ab"), slurp(folder / "ba"));
}

// labels: K01 train.Safetensors
TEST(Safetensors, FileCutAtAnyByteIsRefusedWithBothSizes) {
  const TempFolder folder;
  const ContextPtr context = reference::make_cpu_context();
  const std::string path = folder / "cut.safetensors";
  save_safetensors(path, {{"x", iota(context, {3, 5})}, {"y", iota(context, {2})}}, {{"a", "b"}});
  const std::string whole = slurp(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    spit(path, whole.substr(0, size));
    const std::string message = message_of<RuntimeError>([&] { SafetensorsFile::open(path); });
    ASSERT_TRUE(mentions(message, path));
    ASSERT_TRUE(mentions(message, "wanted "));
    ASSERT_TRUE(mentions(message, "got " + std::to_string(size) + ":")) << size;
  }
  spit(path, whole.substr(0, whole.size() - 1));
  EXPECT_TRUE(mentions(message_of<RuntimeError>([&] { SafetensorsFile::open(path); }),
                       "wanted " + std::to_string(whole.size()) + " bytes"));
  spit(path, whole + "x");
  EXPECT_TRUE(mentions(message_of<RuntimeError>([&] { SafetensorsFile::open(path); }),
                       "longer than its header says"));
}

// labels: K03 train.Safetensors
TEST(Safetensors, FileWithoutTensorsGivesItsMetadata) {
  const TempFolder folder;
  save_safetensors(folder / "meta", {}, {{"crc", "12"}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "meta");
  EXPECT_TRUE(file.entries().empty());
  EXPECT_EQ(file.metadata(), (SafetensorsMetadata{{"crc", "12"}}));
  save_safetensors(folder / "empty", {}, {});
  EXPECT_TRUE(SafetensorsFile::open(folder / "empty").metadata().empty());
}

// labels: K23 train.Safetensors
TEST(Safetensors, FileOfAnotherKindIsRefusedWithItsFirstBytes) {
  const TempFolder folder;
  const std::string path = folder / "model.bin";
  spit(path, "PK\x03\x04\x14\x08\x08\x08 some other program's archive");
  const std::string message = message_of<RuntimeError>([&] { SafetensorsFile::open(path); });
  EXPECT_TRUE(mentions(message, "50 4b 03 04 14 08 08 08"));
  EXPECT_TRUE(mentions(message, "'{'"));
  EXPECT_TRUE(mentions(message, "kitchen checkpoint export"));
  spit(path, raw_file("[1, 2, 3]", 0));
  EXPECT_TRUE(mentions(message_of<RuntimeError>([&] { SafetensorsFile::open(path); }), "0x5b"));
  EXPECT_THROW(SafetensorsFile::open(folder / "none"), IOError);
  EXPECT_TRUE(
      mentions(message_of<IOError>([&] { SafetensorsFile::open(folder.path()); }), "directory"));
}

// labels: K25 train.Safetensors
TEST(Safetensors, ExportedLinearNamesItsLayoutAndKeepsItsBytes) {
  const TempFolder folder;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor weight = iota(context, {3, 5});
  save_safetensors(folder / "w", {{"weight", weight}}, {weight_layout_metadata()});
  const SafetensorsFile file = SafetensorsFile::open(folder / "w");
  EXPECT_TRUE(mentions(file.metadata().at("weight_layout"), "(out_features, in_features)"));
  EXPECT_TRUE(same_bits(weight, file.read("weight", context)));
}

struct BadHeader {
  const char* json;
  std::size_t data_bytes;
  const char* expected;
};

// labels: K23 train.Safetensors
TEST(Safetensors, HeadersThatContradictThemselvesAreRefused) {
  const TempFolder folder;
  const BadHeader cases[] = {
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "wants 8 bytes"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "expected 0"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "expected 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "'a' appears twice"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "appears twice"},
      {R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8, "known are F32"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "expected a whole number"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "expected a whole number"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "overflows"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1, "data_offsets are [1, 0]"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1, "exactly the keys"},
      {R"({"a":{"dtype":"U8","shape":[1]}})", 0, "exactly the keys"},
      {R"({"a":7})", 0, "exactly the keys"},
      {R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1, "expected a list of sizes"},
      {R"({"__metadata__":{"n":1}})", 0, "expected a string"},
      {R"({"__metadata__":[]})", 0, "no object"},
      {R"({"a":{"dtype":"U8")", 0, "no JSON"},
      {"{\"\xff\":1}", 0, "no JSON"},
  };
  for (const BadHeader& bad : cases) {
    spit(folder / "bad", raw_file(bad.json, bad.data_bytes));
    const std::string message =
        message_of<RuntimeError>([&] { SafetensorsFile::open(folder / "bad"); });
    EXPECT_TRUE(mentions(message, bad.expected)) << bad.json;
    EXPECT_TRUE(mentions(message, folder / "bad")) << bad.json;
  }
}

// labels: train.Safetensors
TEST(Safetensors, NamesAndDtypesThatTheFormatLacksAreRefused) {
  const TempFolder folder;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = iota(context, {2});
  EXPECT_THROW(save_safetensors(folder / "x", {{"x", x}, {"x", x}}, {}), ValueError);
  EXPECT_THROW(save_safetensors(folder / "x", {{"__metadata__", x}}, {}), ValueError);
  EXPECT_THROW(save_safetensors(folder / "x", {{"\xff", x}}, {}), ValueError);
  const Tensor codes = Tensor::zeros(context, {2}, DType::float4_e2m1);
  EXPECT_THROW(save_safetensors(folder / "x", {{"x", codes}}, {}), TypeError);
  const Tensor meta = Tensor::empty(make_meta_context(*reference::make_cpu_context()), {2}, DType::float32);
  EXPECT_THROW(save_safetensors(folder / "y", {{"x", meta}}, {}), ValueError);
  save_safetensors(folder / "x", {{"x", x}}, {});
  EXPECT_TRUE(mentions(message_of<KeyError>([&] {
                         (void)SafetensorsFile::open(folder / "x").read("nope", context);
                       }),
                       "'nope'"));
}

}  // namespace
}  // namespace kitchen::train
