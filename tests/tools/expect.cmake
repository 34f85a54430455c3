# Runs PROGRAM with ARGUMENT and fails unless it exits with EXIT and prints text that matches MESSAGE.
# CTest's own PASS_REGULAR_EXPRESSION ignores the exit code, which is half of what a checker promises.
execute_process(COMMAND ${PROGRAM} ${ARGUMENT} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT result STREQUAL EXIT)
  message(FATAL_ERROR "expected exit code ${EXIT}, found ${result}:\n${text}")
endif()
if(NOT text MATCHES "${MESSAGE}")
  message(FATAL_ERROR "expected output that matches '${MESSAGE}', found:\n${text}")
endif()
