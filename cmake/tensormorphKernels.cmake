# SPDX-License-Identifier: Apache-2.0
# For backends that run the kernels of TENSORMORPH_KERNEL_FOLDER, written in the one kernel dialect.

# tensormorph_add_kernels(TARGET): compiles into TARGET the rows, plans and answers of the kernels, and the kernels as text.
function(tensormorph_add_kernels target)
  file(GLOB texts CONFIGURE_DEPENDS ${TENSORMORPH_KERNEL_FOLDER}/kernel_*.inc)
  file(GLOB sources CONFIGURE_DEPENDS ${TENSORMORPH_KERNEL_FOLDER}/kernel_*.c)
  list(APPEND texts ${TENSORMORPH_KERNEL_FOLDER}/kernel_dialect.h ${TENSORMORPH_KERNEL_FOLDER}/kernel_parameters.h)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tensormorphEmbed.cmake)
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernel_texts.c)
  string(REPLACE ";" "," list "${texts}")
  add_custom_command(OUTPUT ${embedded} COMMAND ${CMAKE_COMMAND} -DTEXTS=${list} -DOUTPUT=${embedded} -P ${script}
    DEPENDS ${texts} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${embedded} ${sources})
  target_include_directories(${target} PRIVATE ${TENSORMORPH_KERNEL_FOLDER} ${TENSORMORPH_INCLUDE_FOLDER})
endfunction()

# tensormorph_set_build_id(DEFINER SOURCE...): the file DEFINER, which defines the plugin, gets a build id that changes with
# the sources, the kernels, the headers of the package, the compiler and its flags.
function(tensormorph_set_build_id definer)
  file(GLOB shared ${TENSORMORPH_KERNEL_FOLDER}/kernel_* ${TENSORMORPH_INCLUDE_FOLDER}/tensormorph/*.h)
  set(identity "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_C_FLAGS}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN} ${shared})
  foreach(ingredient ${ARGN} ${shared})
    file(SHA256 ${ingredient} hash)
    string(APPEND identity " ${hash}")
  endforeach()
  string(SHA256 identity "${identity}")
  string(SUBSTRING ${identity} 0 12 identity)
  set_source_files_properties(${definer} PROPERTIES COMPILE_DEFINITIONS TM_PLUGIN_BUILD_ID="${PROJECT_VERSION}+${identity}")
endfunction()
