#include "kitchen/formats/codec.h"

#include "kitchen/base/rng.h"
#include "kitchen/formats/packing.h"
#include "kitchen/formats/scale_rule.h"
#include "kitchen/reference/matrix_tile.h"
#include "support/golden_file.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kitchen {
namespace {

using formats::FloatSpec;
using testing::golden;
using testing::hex16;
using testing::hex32;
using testing::hex8;
using testing::hex_floats;

FloatSpec spec_of(const std::string& name) {
  for (const FloatSpec& spec : formats::all_formats()) {
    if (name == spec.name) return spec;
  }
  ADD_FAILURE() << "no format " << name;
  return {};
}

const std::vector<std::string> kFloatNames{"e4m3", "e5m2", "e2m1", "e2m3", "e3m2"};

// labels: formats.decode N16 golden
TEST(GoldenCodec, DecodesEveryCodeOfEveryFormat) {
  for (const std::string& name : kFloatNames) {
    const FloatSpec spec = spec_of(name);
    const auto& entry = golden().at("formats").at(name);
    EXPECT_EQ(spec.bits(), entry.at("bits").get<int>());
    EXPECT_EQ(spec.max_code, entry.at("max_code").get<int>());
    EXPECT_EQ(bits_of(formats::max_value(spec)), hex32(entry.at("max"))[0]);
    const auto table = entry.at("decode_f32").get<std::vector<std::string>>();
    ASSERT_EQ(table.size(), std::size_t{1} << spec.bits());
    for (std::uint32_t code = 0; code < table.size(); ++code) {
      EXPECT_EQ(bits_of(formats::decode(code, spec)), hex32(table[code])[0]) << name << " " << code;
    }
  }
}

// labels: formats.encode N13 N15 golden
TEST(GoldenCodec, EncodesEveryValueMidpointAndNeighbour) {
  for (const std::string& name : kFloatNames) {
    const FloatSpec spec = spec_of(name);
    const auto& entry = golden().at("encode").at(name);
    const std::vector<float> inputs = hex_floats(entry.at("f32"));
    const auto saturating = hex8(entry.at("sat"));
    const auto plain = hex8(entry.at("nosat"));
    ASSERT_EQ(inputs.size(), saturating.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(formats::encode(inputs[i], spec), saturating[i]) << name << " " << inputs[i];
      EXPECT_EQ(formats::encode(inputs[i], spec, false), plain[i]) << name << " " << inputs[i];
    }
  }
}

// labels: formats.encode golden
TEST(GoldenCodec, RowsEncodeAndDecodeAsSingleElements) {
  for (const std::string& name : kFloatNames) {
    const FloatSpec spec = spec_of(name);
    const std::vector<float> inputs = hex_floats(golden().at("encode").at(name).at("f32"));
    const auto n = static_cast<std::int64_t>(inputs.size());
    std::vector<std::uint8_t> codes(inputs.size(), 0xEE);
    reference::row_encoder(spec)(spec, inputs.data(), 1.0f, codes.data(), n);
    EXPECT_EQ(codes, hex8(golden().at("encode").at(name).at("sat"))) << name;
    std::vector<float> values(inputs.size(), NAN);
    reference::row_decoder(spec)(spec, codes.data(), 1.0f, values.data(), n);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(bits_of(values[i]), bits_of(formats::decode(codes[i], spec)));
    }
  }
}

// labels: formats.encode golden
TEST(GoldenCodec, SixteenBitFormatsRoundOnce) {
  const auto& bf16 = golden().at("encode").at("bf16");
  const auto& fp16 = golden().at("encode").at("fp16");
  const std::vector<float> inputs = hex_floats(bf16.at("f32"));
  const auto bf16_bits = hex16(bf16.at("bf16"));
  const auto fp16_bits = hex16(fp16.at("fp16"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(formats::float_to_bf16(inputs[i]), bf16_bits[i]) << inputs[i];
    EXPECT_EQ(formats::float_to_fp16(inputs[i]), fp16_bits[i]) << inputs[i];
  }
  EXPECT_EQ(formats::fp16_to_float(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(formats::fp16_to_float(0xFBFF), -65504.0f);
  EXPECT_EQ(formats::bf16_to_float(0x3F80), 1.0f);
}

// labels: formats.e8m0 N08 golden
TEST(GoldenCodec, ScaleBytesDecodeAndInvertExactly) {
  const auto& entry = golden().at("formats").at("e8m0");
  for (std::uint32_t code = 0; code < 256; ++code) {
    const std::string decoded = entry.at("decode_f32").at(code);
    const std::string reciprocal = entry.at("rcp_f32").at(code);
    EXPECT_EQ(bits_of(formats::e8m0_decode(code)), hex32(decoded)[0]) << code;
    EXPECT_EQ(bits_of(formats::e8m0_reciprocal(code)), hex32(reciprocal)[0]) << code;
  }
}

// labels: formats.e8m0 N10 N12 golden
TEST(GoldenCodec, ScaleBytesFollowBothRules) {
  const auto& entry = golden().at("encode").at("e8m0_roundup");
  const std::vector<float> inputs = hex_floats(entry.at("f32"));
  const auto codes = hex8(entry.at("code"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(formats::e8m0_roundup(inputs[i]), codes[i]) << inputs[i];
  }
  for (const std::string name : {"e4m3", "e5m2", "e2m1"}) {
    const FloatSpec spec = spec_of(name);
    const auto& scales = golden().at("encode").at("mx_scale_" + name);
    const std::vector<float> amaxes = hex_floats(scales.at("amax"));
    const auto roundup = hex8(scales.at("roundup"));
    const auto floor = hex8(scales.at("ocp_floor"));
    for (std::size_t i = 0; i < amaxes.size(); ++i) {
      const auto code = [&](formats::ScaleRule rule) {
        return formats::block_scale(rule, spec, amaxes[i], false, 0.0f, 1.0f, 0.0f).code;
      };
      EXPECT_EQ(code(formats::ScaleRule::e8m0_roundup), roundup[i]) << name << " " << amaxes[i];
      EXPECT_EQ(code(formats::ScaleRule::e8m0_ocp_floor), floor[i]) << name << " " << amaxes[i];
    }
  }
}

// labels: formats.compute_scale N03 N25 golden
TEST(GoldenScale, ComputeScaleFollowsTheTable) {
  const auto& rows = golden().at("compute_scale").at("rows");
  ASSERT_EQ(rows.size(), 128u);
  const float bf16_max = float_from_bits(0x7F7F0000u);
  for (const auto& row : rows) {
    const auto number = [&](std::size_t i) { return hex_floats(row.at(i).get<std::string>())[0]; };
    const float largest = formats::max_value(spec_of(row.at(1)));
    const bool pow2 = row.at(2).get<int>() != 0;
    const float scale =
        formats::compute_scale(number(0), largest, number(3), pow2, formats::kFloatMax);
    EXPECT_EQ(bits_of(scale), bits_of(number(4))) << row;
    EXPECT_EQ(bits_of(1.0f / scale), bits_of(number(5))) << row;
    const float of_bf16 = formats::compute_scale(number(0), largest, number(3), pow2, bf16_max);
    EXPECT_EQ(bits_of(of_bf16), bits_of(number(6))) << row;
  }
}

// labels: base.rng golden
TEST(GoldenRandom, PhiloxGivesTheKnownAnswers) {
  for (const auto& entry : golden().at("philox4x32_10")) {
    const auto word = [&](const char* key, std::size_t i) {
      return hex32(entry.at(key).at(i).get<std::string>())[0];
    };
    const Words4 counter{{word("ctr", 0), word("ctr", 1), word("ctr", 2), word("ctr", 3)}};
    const std::uint64_t key = (std::uint64_t{word("key", 1)} << 32) | word("key", 0);
    const Words4 out = philox4x32(counter, key);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(out.v[i], word("out", i));
  }
}

// labels: base.rng golden
TEST(GoldenRandom, RoundingWordsComeFromSeedOffsetAndUsage) {
  const auto& entry = golden().at("sr_words");
  const Rng rng{
      testing::hex64(entry.at("seed")),
      entry.at("offset").get<std::uint64_t>() | (entry.at("usage").get<std::uint64_t>() << 56)};
  for (std::size_t i = 0; i < entry.at("n").get<std::size_t>(); ++i) {
    EXPECT_EQ(rng.word(i), hex32(entry.at("words").at(i).get<std::string>())[0]);
  }
}

// labels: formats.encode_e2m1_stochastic golden
TEST(GoldenRandom, StochasticRoundingFollowsTheWord) {
  const auto& entry = golden().at("e2m1_sr");
  const std::vector<float> inputs = hex_floats(entry.at("y_f32"));
  for (std::size_t j = 0; j < entry.at("r").size(); ++j) {
    const std::uint32_t word = hex32(entry.at("r").at(j).get<std::string>())[0];
    const auto codes = hex8(entry.at("codes_by_r").at(j));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(formats::encode_e2m1_stochastic(inputs[i], word), codes[i])
          << inputs[i] << " " << word;
    }
  }
}

// labels: formats.hadamard golden
TEST(GoldenHadamard, TransformsAndRoundsAsTheFile) {
  const auto& entry = golden().at("rht16");
  std::vector<float> values;
  for (const std::uint16_t bits : hex16(entry.at("input_bf16"))) {
    values.push_back(formats::bf16_to_float(bits));
  }
  std::vector<float> rounded = values;
  reference::hadamard16_rows(values.data(), 4, 32, 32, DType::float32);
  reference::hadamard16_rows(rounded.data(), 4, 32, 32, DType::bfloat16);
  const auto fp32 = hex32(entry.at("out_f32"));
  const auto bf16 = hex16(entry.at("out_bf16"));
  ASSERT_EQ(fp32.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(bits_of(values[i]), fp32[i]);
    EXPECT_EQ(bits_of(rounded[i]), std::uint32_t{bf16[i]} << 16);
  }
}

// labels: formats.packing golden
TEST(GoldenLayout, ScaleTilesOf128x4) {
  const auto& entry = golden().at("swizzle_128x4");
  std::vector<std::uint8_t> scales;
  for (int i = 0; i < 130 * 5; ++i) scales.push_back(static_cast<std::uint8_t>(i % 251));
  ASSERT_EQ(formats::swizzled_size_128x4(130, 5), entry.at("out_len").get<std::int64_t>());
  std::vector<std::uint8_t> out(entry.at("out_len").get<std::size_t>(), 0xEE);
  formats::swizzle_128x4(scales.data(), 130, 5, out.data());
  EXPECT_EQ(testing::fnv_of(out), entry.at("out_fnv").get<std::string>());
  for (const auto& probe : entry.at("probe")) {
    EXPECT_EQ(formats::swizzled_offset_128x4(probe.at(0), probe.at(1), 5),
              probe.at(2).get<std::int64_t>());
  }
}

// labels: formats.packing
TEST(GoldenLayout, FourBitCodesPackInPairsWithAZeroAtTheOddEnd) {
  const std::vector<std::uint8_t> codes{1, 2, 3, 15, 9, 4};
  std::vector<std::uint8_t> packed(4, 0xEE);
  formats::pack4(codes.data(), 2, 3, packed.data());
  EXPECT_EQ(packed, (std::vector<std::uint8_t>{0x21, 0x03, 0x9F, 0x04}));
  std::vector<std::uint8_t> back(6, 0xEE);
  formats::unpack4(packed.data(), 2, 3, back.data());
  EXPECT_EQ(back, codes);
}

}  // namespace
}  // namespace kitchen
