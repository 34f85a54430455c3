# kitchen_check_headers(<source root>): every header below src/kitchen compiles alone.
#
# One generated source a header, in one object library that is part of `all` where the tests are built. A
# header that needs another one before it does not compile here. Without optimization, so that it stays cheap.
function(kitchen_check_headers root)
  file(GLOB_RECURSE headers RELATIVE ${root} CONFIGURE_DEPENDS ${root}/kitchen/*.h)
  set(sources "")
  foreach(header IN LISTS headers)
    string(REPLACE "/" "-" name ${header})
    set(source ${CMAKE_BINARY_DIR}/header_check/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  add_library(header_check OBJECT ${sources})
  target_include_directories(header_check PRIVATE ${root})
  target_link_libraries(header_check PRIVATE kitchen_flags OpenMP::OpenMP_CXX CLI11::CLI11)
  target_compile_options(header_check PRIVATE -O0)
  add_test(NAME header_check
    COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target header_check)
  set_tests_properties(header_check PROPERTIES LABELS header_check TIMEOUT 600 RESOURCE_LOCK build_folder)
endfunction()
