# SPDX-License-Identifier: Apache-2.0
# PROGRAM says of a file that it cannot use which one that is, by what option, and what is expected there, and of a backend that was
# asked for that it has no device; MODEL is a model.
function(refuses says)
  execute_process(COMMAND ${PROGRAM} ${MODEL} --steps 2 --quiet ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(result EQUAL 0 OR NOT err MATCHES "${says}")
    message(FATAL_ERROR "${ARGN}: result ${result}, expected '${says}', found: ${out}${err}")
  endif()
endfunction()
refuses("^--vocabulary /nonexistent: cannot be opened: No such file or directory; expected is llama2.c's tokenizer file of the model's 512 tokens"
  --vocabulary /nonexistent)
refuses("^--vocabulary [^\n]*/refuse_files.cmake: only 0 of its tokens can be read; expected is llama2.c's tokenizer file"
  --vocabulary ${CMAKE_CURRENT_LIST_FILE})
refuses("^--plugin /nonexistent.so: [^\n]*No such file" --plugin /nonexistent.so)
refuses("^--plugin [^\n]*/refuse_files.cmake: ." --plugin ${CMAKE_CURRENT_LIST_FILE})
# The story is told all the same, and by whom not is said.
execute_process(COMMAND ${PROGRAM} ${MODEL} --steps 2 --quiet --device webgpu --set webgpu.library=/nonexistent
  RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT result EQUAL 0 OR NOT err MATCHES "^nothing goes to webgpu: it has no device here: [^\n]+\n")
  message(FATAL_ERROR "--device webgpu: result ${result}, found: ${out}${err}")
endif()
# Who is left out is named, also where nobody is left to say why not.
refuses("can run it as asked; left out by request: [^\n]*cpu" --no-device cpu --no-device reference --no-device webgpu)
