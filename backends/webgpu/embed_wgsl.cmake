# SPDX-License-Identifier: Apache-2.0
# cmake -DFILES=a.wgsl,b.wgsl -DOUTPUT=shaders.c -P embed_wgsl.cmake: the files as NUL-terminated arrays of char.
string(REPLACE "," ";" files "${FILES}")
set(text "/* Made by embed_wgsl.cmake. */\n#include \"webgpu_shaders.h\"\n")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "^webgpu_" "" name ${name})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "const char webgpu_wgsl_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
