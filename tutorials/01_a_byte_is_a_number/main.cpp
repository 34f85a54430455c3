#include "common/lesson.h"

#include "kitchen/formats/codec.h"
#include "kitchen/report/line_chart.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace {

using namespace kitchen;
using formats::decode;
using formats::encode;
using formats::FloatSpec;
using tutorials::exact;
using tutorials::Lesson;

// ## 1. One byte, by hand
//
// The byte 0x1D is 0 0011 101 in binary: sign 0, stored exponent 3, stored mantissa 5. The format
// says what they mean: $(2^3 + 5) \cdot 2^{3 - 7 - 3}$, thirteen steps of $2^{-7}$. The library
// reads the same fields from a `FloatSpec`, which is nothing but the widths, the bias and the
// special codes.
void read_one_byte(Lesson& lesson) {
  const int exponent = (0x1D >> 3) & 0xF;
  const int mantissa = 0x1D & 0x7;
  const double by_hand = std::ldexp(8 + mantissa, exponent - 7 - 3);
  lesson.number("by_hand", "0x1D by hand", by_hand, exact());
  lesson.number("by_library", "0x1D by decode", decode(0x1D, formats::kE4M3), exact());
}

// ## 2. All 256 codes of E4M3
//
// A byte has only 256 values, so we can look at each of them. One row is one stored exponent: along
// it the mantissa counts up in even steps, and from row to row the step doubles. Only the first row
// breaks the rule: with a stored exponent of zero the leading one is gone (*subnormal* numbers), so
// that the steps of the second row go on evenly down to zero instead of leaving a hole there.
void list_all_codes(Lesson& lesson) {
  for (std::uint32_t first = 0x00; first < 0x80; first += 8) {
    std::string line = fmt::format("  0x{:02X}", first);
    for (std::uint32_t code = first; code < first + 8; ++code) {
      line += fmt::format(" {:>8.4g}", decode(code, formats::kE4M3));
    }
    lesson.print(line);
  }
  lesson.print("  0x80 to 0xFF are the same with a minus sign.");
  lesson.number("smallest", "smallest value above 0", decode(0x01, formats::kE4M3), exact());
  lesson.number("largest", "largest value", formats::max_value(formats::kE4M3), exact());
}

// ## 3. From a number to a byte
//
// Most numbers have no byte of their own. `encode` takes the nearest one, and where two are equally
// near it takes the one whose last bit is 0: *ties to even*. Always rounding ties up would push
// every sum upwards a little; over millions of values the drift would be visible in the loss.
// Beyond the largest value there is nothing to round to, so the code stays at the largest one.
// That is *saturation*, and it is much kinder to training than an infinity.
void round_some_numbers(Lesson& lesson) {
  for (const float x : {0.1f, 17.0f, 18.9f, 19.0f, 449.0f, 1e6f, -0.0005f}) {
    const std::uint32_t code = encode(x, formats::kE4M3);
    lesson.print(
        fmt::format("  {:>10g} -> 0x{:02X} -> {:g}", x, code, decode(code, formats::kE4M3)));
  }
  const float tenth = decode(encode(0.1f, formats::kE4M3), formats::kE4M3);
  lesson.number("tenth", "what 0.1 becomes", tenth, exact());
  lesson.number("tenth_error", "its relative error", std::fabs(tenth - 0.1) / 0.1, exact());
}

// ## 4. The same numbers in three formats
//
// Bits spent on the exponent buy range, bits spent on the mantissa buy steps. E5M2 reaches much
// further than E4M3 and is twice as coarse; E2M1, four bits in all, has eight values on each side
// of zero. The picture draws every positive value: count how many marks lie between one power of
// two and the next.
report::LineSeries values_of(const FloatSpec& spec, double height, int style) {
  report::LineSeries series{fmt::format("{}", spec.name), {}, {}, style, true, false};
  for (int code = 1; code <= spec.max_code; ++code) {
    const float value = decode(static_cast<std::uint32_t>(code), spec);
    if (value < 0.2f || value > 8.5f) continue;
    series.x.push_back(value);
    series.y.push_back(height);
  }
  return series;
}

void draw_number_lines(Lesson& lesson) {
  report::LineChart chart;
  chart.title = "Positive values between 0.2 and 8 that each format has";
  chart.description =
      "Three rows of marks over a logarithmic axis: E4M3 with eight values between "
      "powers of two, E5M2 with four, E2M1 with two.";
  chart.x = {"value", true};
  chart.y = {"one row a format", false};
  chart.series = {values_of(formats::kE4M3, 3.0, 0), values_of(formats::kE5M2, 2.0, 1),
                  values_of(formats::kE2M1, 1.0, 2)};
  chart.height = 300.0;
  lesson.figure("number_lines.svg", report::line_chart(chart));
  for (const FloatSpec& spec : {formats::kE4M3, formats::kE5M2, formats::kE2M1}) {
    lesson.number(fmt::format("max_{}", spec.name), fmt::format("largest value of {}", spec.name),
                  formats::max_value(spec), exact());
  }
}

// ## 5. Codes that are no numbers
//
// Training produces NaN when something has gone wrong, and the format must carry the news. E4M3
// spends one code a sign on it and has no infinity; E5M2 keeps both, as IEEE formats do; E2M1 has
// room for neither, so its blocks carry a NaN in their scale (tutorial 04). We count what is left.
int count_values(const FloatSpec& spec) {
  std::set<float> values;
  for (std::uint32_t code = 0; code < (1u << spec.bits()); ++code) {
    const float value = decode(code, spec);
    if (std::isfinite(value)) values.insert(value);  // +0 and -0 are one value
  }
  return static_cast<int>(values.size());
}

void count_what_is_left(Lesson& lesson) {
  for (const FloatSpec& spec : {formats::kE4M3, formats::kE5M2, formats::kE2M1}) {
    lesson.number(fmt::format("values_{}", spec.name),
                  fmt::format("finite values of {}", spec.name), count_values(spec), exact());
  }
  const std::uint32_t nan_code = encode(std::nanf(""), formats::kE4M3);
  lesson.print(fmt::format("  NaN -> 0x{:02X} -> {}", nan_code, decode(nan_code, formats::kE4M3)));
}

std::string byte_of_a_fifth(const ContextPtr&) {
  const std::uint32_t code = encode(0.2f, formats::kE4M3);
  return fmt::format("0x{:02X} {}", code, decode(code, formats::kE4M3));
}

std::string ties_in_e5m2(const ContextPtr&) {
  const auto rounded = [](float x) { return decode(encode(x, formats::kE5M2), formats::kE5M2); };
  return fmt::format("{} {}", rounded(9.0f), rounded(11.0f));
}

std::string values_of_e3m2(const ContextPtr&) {
  return fmt::format("{} {}", count_values(formats::kE3M2), formats::max_value(formats::kE3M2));
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "01_a_byte_is_a_number",
      {{"One byte, by hand", read_one_byte},
       {"All 256 codes of E4M3", list_all_codes},
       {"From a number to a byte", round_some_numbers},
       {"The same numbers in three formats", draw_number_lines},
       {"Codes that are no numbers", count_what_is_left}},
      {{"Which byte is 0.2 in E4M3, and what is its value?",
        "0.2 lies between 2^-3 and 2^-2, where the step is 2^-6. Which multiple is nearest?",
        byte_of_a_fifth},
       {"Change E4M3 to E5M2: what do 9 and 11 become?",
        "Between 8 and 16 E5M2 has steps of 2. Both are ties; which neighbour has an even code?",
        ties_in_e5m2},
       {"How many finite values has the six-bit format E3M2, and which is the largest?",
        "No code is lost to NaN or infinity, but +0 and -0 are one value.", values_of_e3m2}},
      argc, argv);
}
