/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void tm_log_write(const tm_log *log, uint32_t level, const char *format, ...) {
  if (log == NULL || log->write == NULL) return;
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (length >= 0) log->write(log->context, level, message);
}
