#include "kitchen/base/error.h"
#include "kitchen/config/yaml.h"

#include <cstddef>
#include <cstdint>
#include <string>

/// Any bytes give a value or an Error; anything else stops the fuzzer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    (void)kitchen::parse_yaml(std::string(data, data + size), "fuzz.yaml");
  } catch (const kitchen::Error&) {
  }
  return 0;
}
