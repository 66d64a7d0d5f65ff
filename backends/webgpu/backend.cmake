# SPDX-License-Identifier: Apache-2.0
# Every webgpu_*.c belongs to the backend, and every .wgsl is embedded.  The implementation of WebGPU is found at run time:
# nothing is linked.
file(GLOB webgpu_sources RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/webgpu_*.c)
file(GLOB webgpu_wgsl CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/webgpu_*.wgsl)
list(JOIN webgpu_wgsl "," webgpu_wgsl_list)
set(webgpu_shaders ${CMAKE_CURRENT_BINARY_DIR}/webgpu_shaders.c)
add_custom_command(OUTPUT ${webgpu_shaders}
  COMMAND ${CMAKE_COMMAND} -DFILES=${webgpu_wgsl_list} -DOUTPUT=${webgpu_shaders} -P ${CMAKE_CURRENT_LIST_DIR}/embed_wgsl.cmake
  DEPENDS ${webgpu_wgsl} ${CMAKE_CURRENT_LIST_DIR}/embed_wgsl.cmake VERBATIM)
tm_add_backend(SOURCES ${webgpu_sources} ${webgpu_shaders})
