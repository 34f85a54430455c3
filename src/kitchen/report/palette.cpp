#include "kitchen/report/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace kitchen::report {
namespace {

constexpr int kNumColors = 6;
constexpr double kPi = 3.14159265358979323846;

double to_linear(double srgb) {
  return srgb <= 0.04045 ? srgb / 12.92 : std::pow((srgb + 0.055) / 1.055, 2.4);
}

int to_srgb_byte(double linear) {
  const double value = std::clamp(linear, 0.0, 1.0);
  const double srgb =
      value <= 0.0031308 ? 12.92 * value : 1.055 * std::pow(value, 1.0 / 2.4) - 0.055;
  return static_cast<int>(std::lround(255.0 * srgb));
}

std::string oklab_to_hex(double lightness, double a, double b) {
  const auto cube = [](double v) { return v * v * v; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return fmt::format("#{:02x}{:02x}{:02x}",
                     to_srgb_byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
                     to_srgb_byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
                     to_srgb_byte(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s));
}

}  // namespace

SeriesStyle series_style(int index) {
  static const std::array<const char*, kNumColors> kColors = {"#0072b2", "#b84500", "#00785a",
                                                              "#882255", "#7a5f00", "#505050"};
  static const std::array<const char*, kNumColors> kDashes = {"none",     "7 4", "2 3",
                                                              "10 3 2 3", "4 2", "12 4"};
  const int color = index % kNumColors;
  const auto at = [](const auto& values, int i) { return values[static_cast<std::size_t>(i)]; };
  return {at(kColors, color), fmt::format("k-c{}", color),
          at(kDashes, (index + index / kNumColors) % kNumColors), static_cast<MarkerShape>(color),
          index % 2 == 1};
}

std::string ramp_color(double t) {
  const double u = std::clamp(t, 0.0, 1.0);
  const double lightness = 0.97 - 0.67 * u;
  // Hue runs yellow, green, blue; the chroma is what sRGB can show at each lightness.
  const double hue = (105.0 + 160.0 * u) * kPi / 180.0;
  const double chroma = 0.055 + 0.05 * u;
  return oklab_to_hex(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
}

double relative_luminance(const std::string& color) {
  const auto channel = [&](std::size_t at) {
    return to_linear(static_cast<double>(std::strtol(color.substr(at, 2).c_str(), nullptr, 16)) /
                     255.0);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

std::string text_color_on(const std::string& color) {
  // The contrasts (L + 0.05) / 0.05 and 1.05 / (L + 0.05) are equal at L = 0.179.
  return relative_luminance(color) > 0.179 ? "#000000" : "#ffffff";
}

}  // namespace kitchen::report
