# SPDX-License-Identifier: Apache-2.0
# cmake -DTEXTS=FILE,FILE... -DOUTPUT=FILE.c -P tensormorphEmbed.cmake: writes the texts as arrays of bytes (a string literal
# may not be this long), each behind a #line with its name, so that a compiler's message names the file.
string(REPLACE "," ";" files "${TEXTS}")
set(arrays "")
set(rows "")
set(number 0)
foreach(text ${files})
  get_filename_component(name ${text} NAME)
  file(READ ${text} content)
  string(HEX "#line 1 \"${name}\"\n${content}\n" bytes)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char text_${number}[] = {${bytes}};\n")
  string(APPEND rows "  { \"${name}\", text_${number}, sizeof text_${number} },\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"kernel_text.h\"\n\n${arrays}\nconst kernel_text kernel_texts[] = {\n${rows}};\n\
const size_t kernel_text_count = ${number};\n")
