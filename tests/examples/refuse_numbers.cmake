# SPDX-License-Identifier: Apache-2.0
# PROGRAM answers each of these with how it is used, and does not look for the model.
foreach(words "--steps;-3" "--steps;+3" "--steps; 3" "--steps;3x" "--steps;4294967296" "--temperature;nan" "--temperature;-1" "--temperature;inf"
    "--temperature;1x" "--seed;-1" "--seed;18446744073709551616" "--prompt;-1" "--prompt;1,4294967297" "--prompt;1,,2")
  execute_process(COMMAND ${PROGRAM} no-such-model ${words} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(result EQUAL 0 OR NOT err MATCHES "^usage: ")
    message(FATAL_ERROR "${words}: result ${result}, ${out}${err}")
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} no-such-model --steps 3 --temperature 0.5 --seed 18446744073709551615 --prompt 1,2
  RESULT_VARIABLE result ERROR_VARIABLE err)
if(result EQUAL 0 OR err MATCHES "^usage: ")
  message(FATAL_ERROR "sound numbers: result ${result}, ${err}")
endif()
