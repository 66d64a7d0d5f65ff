/* SPDX-License-Identifier: Apache-2.0 */
#include "complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "printable_text.h"

tm_status tm_refuse(tm_error *error, tm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error->code = status;
  error->native_code = 0;
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  return status;
}

/* The library speaks to applications, of its options; here they are flags. */
const char *tm_in_flags(const char *text, char *out, uint64_t capacity) {
  static const struct {
    const char *option, *flag;
  } rows[] = { { "max_memory_bytes", "--max-memory" }, { "max_header_bytes", "--max-header" },
             { "missing: copy", "--missing copy" }, { "the format of y must be given", "--output-dtype must be given" },
             { "tm_context_reset_profile", "tensormorph profile reset" },
             { "keep them as they are", "keep them as they are (--no-normalize)" },
             { "writing it again or asking for its recovery", "the same merge again with --force" } };
  uint64_t used = 0;
  while (*text != '\0' && used + 1 < capacity) {
    uint32_t row = 0;
    while (row < sizeof rows / sizeof *rows && strncmp(text, rows[row].option, strlen(rows[row].option)) != 0) row++;
    if (row == sizeof rows / sizeof *rows) {
      out[used++] = *text++;
      continue;
    }
    used += (uint64_t)snprintf(out + used, capacity - used, "%s", rows[row].flag);
    text += strlen(rows[row].option);
  }
  out[used < capacity ? used : capacity - 1] = '\0';
  return out;
}

static void print_line(const char *text) {
  char escaped[4096], flags[2048];
  text = tm_in_flags(text, flags, sizeof flags);
  tm_printable_clean(text, strlen(text), escaped, sizeof escaped);
  fprintf(stderr, "tensormorph: %s\n", escaped);
}

int tm_complain(const tm_error *error) {
  print_line(error->text[0] != '\0' ? error->text : "failed without saying why");
  if (error->code == TM_ERROR_ARGUMENT) return TM_EXIT_USAGE;
  return error->code == TM_ERROR_CANCELLED ? TM_EXIT_INTERRUPTED : TM_EXIT_TROUBLE;
}

int tm_complain_as(int exit_code, const char *format, ...) {
  char    text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  print_line(text);
  return exit_code;
}
