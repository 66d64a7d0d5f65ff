/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/plain_print.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

#define LONGEST_TEXT 8192

void plain_write(const char *text, size_t length, FILE *to) {
  for (size_t i = 0; i < length;) {
    const uint32_t bytes = tm_utf8_length(text + i, length - i);
    if (text[i] == '\n' || (bytes != 0 && tm_text_is_clean(text + i, bytes))) {
      (void)fwrite(text + i, 1, bytes, to);
      i += bytes;
      continue;
    }
    const size_t taken = bytes == 0 ? 1 : bytes;
    for (size_t j = 0; j < taken; j++) fprintf(to, "\\x%02x", (unsigned)(unsigned char)text[i + j]);
    i += taken;
  }
}

void plain_print(FILE *to, const char *format, ...) {
  char text[LONGEST_TEXT];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  plain_write(text, strlen(text), to);
}
