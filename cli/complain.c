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

static void print_line(const char *text) {
  char escaped[4096];
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
