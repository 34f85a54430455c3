# Compiler flags, in one interface target that every target of the project links.
add_library(kitchen_flags INTERFACE)
target_compile_options(kitchen_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion>
  # Exact ops must not be contracted into fused multiply-adds; where one is wanted it is written fmaf.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  # Neither flag changes a value: errno and trap state are not read anywhere, and both block vectorization.
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno -fno-trapping-math>)
if(KITCHEN_WARNINGS_AS_ERRORS)
  target_compile_options(kitchen_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# A fixed baseline instead of -march=native: binaries are carried to other machines.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(kitchen_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3>)
endif()
if(KITCHEN_SANITIZE)
  target_compile_options(kitchen_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${KITCHEN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(kitchen_flags INTERFACE -fsanitize=${KITCHEN_SANITIZE})
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
