# kitchen_add_tests(<room> <source>...): one test program a room, one CTest entry a GoogleTest case.
#
# Every TEST in a source must be preceded by a line "// labels: A B C": the documented symbols, checklist
# lines or case ids that it proves. They become CTest labels, so `ctest -L N16` runs what proves case N16.
# A test without labels stops the configuration.
#
# A TEST_P in tests/contract runs on every backend of the build, whose name begins its parameter: it gets an
# entry for each, so that a device that is not there skips its own entry only.
function(kitchen_add_case name labels program filter)
  if(filter MATCHES "/\\*$" AND program STREQUAL "kitchen_test_contract")
    string(REGEX REPLACE "\\*$" "" prefix "${filter}")
    kitchen_add_entry(${name}/cpu "${labels}" ${program} "${prefix}cpu*")
    if(KITCHEN_HAS_CUDA)
      kitchen_add_entry(${name}/cuda "${labels};cuda" ${program} "${prefix}cuda*")
    endif()
  else()
    kitchen_add_entry(${name} "${labels}" ${program} "${filter}")
  endif()
endfunction()

function(kitchen_add_entry name labels program filter)
  add_test(NAME ${name} COMMAND ${program} "--gtest_filter=${filter}" --gtest_color=no)
  # A filter that matches nothing would pass with zero tests run.
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 300
    FAIL_REGULAR_EXPRESSION "Running 0 tests" SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()

function(kitchen_register_cases program source)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} lines REGEX "^(// labels:|TEST(_F|_P)?\\()")
  set(labels "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^// labels: *(.*)$")
      string(REGEX REPLACE "[ ,]+" ";" labels "${CMAKE_MATCH_1}")
    elseif(line MATCHES "^TEST(_F|_P)?\\(([A-Za-z0-9_]+), *([A-Za-z0-9_]+)")
      set(name "${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
      if("${labels}" STREQUAL "")
        message(FATAL_ERROR "${source}: ${name} has no '// labels:' line above it")
      endif()
      if("${CMAKE_MATCH_1}" STREQUAL "_P")
        set(filter "*/${name}/*")
      else()
        set(filter "${name}")
      endif()
      kitchen_add_case(${name} "${labels}" ${program} "${filter}")
      set(labels "")
    endif()
  endforeach()
endfunction()

function(kitchen_add_tests room)
  set(program kitchen_test_${room})
  add_executable(${program} ${ARGN})
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${program} PRIVATE kitchen kitchen_backends kitchen_test_support kitchen_flags GTest::gtest
    GTest::gtest_main nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX)
  target_compile_definitions(${program} PRIVATE
    KITCHEN_SOURCE_DIR="${CMAKE_SOURCE_DIR}" KITCHEN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  foreach(source IN LISTS ARGN)
    kitchen_register_cases(${program} ${source})
  endforeach()
endfunction()
