# SPDX-License-Identifier: Apache-2.0
# PROGRAM answers each of these with which argument it was and how it is used, and does not look for the model.
foreach(words "--steps;-3" "--steps;+3" "--steps; 3" "--steps;3x" "--steps;4294967296" "--temperature;nan" "--temperature;-1" "--temperature;inf"
    "--temperature;1x" "--seed;-1" "--seed;18446744073709551616" "--prompt;-1" "--prompt;1,4294967297" "--prompt;1,,2"
    "--set;x" "--stps;3" "--steps" "--device" "another-model")
  execute_process(COMMAND ${PROGRAM} no-such-model ${words} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  string(FIND "${err}" "usage: " usage)
  list(GET words 0 first)
  list(GET words -1 last)
  string(REGEX MATCH "^llama: [^\n]*\n" told "${err}")
  string(FIND "${told}" "${first}" first_at)
  string(FIND "${told}" "${last}" last_at)
  if(first STREQUAL "--stps")
    set(last_at 0)
  endif()
  if(NOT result EQUAL 2 OR usage EQUAL -1 OR first_at EQUAL -1 OR last_at EQUAL -1)
    message(FATAL_ERROR "${words}: result ${result}, ${out}${err}")
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} no-such-model --steps 3 --temperature 0.5 --seed 18446744073709551615 --prompt 1,2
  RESULT_VARIABLE result ERROR_VARIABLE err)
if(result EQUAL 0 OR err MATCHES "usage: ")
  message(FATAL_ERROR "sound numbers: result ${result}, ${err}")
endif()
