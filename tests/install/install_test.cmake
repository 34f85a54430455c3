# Installs the build in BUILD_DIR below WORK_DIR, then configures, builds and runs consumer/ against it.
# The consumer sees the installed prefix only, so that a header or a dependency that was forgotten shows.
function(run_step name)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${name} failed (${result}):\n${text}")
  endif()
  set(step_output "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run_step("install" ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run_step("configure" ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
  "-DCMAKE_CXX_FLAGS=${FLAGS}")
if(NOT EXISTS ${WORK_DIR}/build/CMakeCache.txt)
  message(FATAL_ERROR "configure left no cache")
endif()
file(STRINGS ${WORK_DIR}/build/CMakeCache.txt found REGEX "^kitchen_DIR")
if(NOT found MATCHES "${WORK_DIR}/prefix")
  message(FATAL_ERROR "the package was not found in the prefix but by ${found}")
endif()
run_step("build" ${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run_step("run" ${WORK_DIR}/build/consumer)
foreach(line "shape \\[2, 3\\]" "sum 21" "refused: ")
  if(NOT step_output MATCHES "${line}")
    message(FATAL_ERROR "expected '${line}' in the output, found:\n${step_output}")
  endif()
endforeach()

# The consumer knows the library alone: what is private to it must not be an entry of its own.
execute_process(COMMAND readelf -d ${WORK_DIR}/build/consumer OUTPUT_VARIABLE entries)
if(entries MATCHES "NEEDED[^\n]*(fmt|spdlog|yaml|openblas)")
  message(FATAL_ERROR "a private dependency of the library leaks into its users:\n${entries}")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
