#include "kitchen/base/error.h"
#include "kitchen/train/safetensors_header.h"

#include <cstddef>
#include <cstdint>
#include <string>

/// Any bytes give a header, which can be written again, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto header =
        kitchen::train::parse_safetensors_header("fuzz", std::string(data, data + size));
    (void)kitchen::train::make_safetensors_header(header.entries, header.metadata);
  } catch (const kitchen::Error&) {
  }
  return 0;
}
