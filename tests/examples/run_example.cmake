# SPDX-License-Identifier: Apache-2.0
# Runs PROGRAM on FILE, with ARGUMENTS behind it; it must succeed and its output must match SAYS.
execute_process(COMMAND ${PROGRAM} ${FILE} ${ARGUMENTS} OUTPUT_VARIABLE said ERROR_VARIABLE complaints RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "exit ${code}\n${said}\n${complaints}")
endif()
if(NOT said MATCHES "${SAYS}")
  message(FATAL_ERROR "expected output like '${SAYS}', found:\n${said}\n${complaints}")
endif()
