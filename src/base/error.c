/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Bytes of text that the caller's struct has room for; 0: it has none at all. */
static size_t text_room(const tm_error *error) {
  if (error == NULL || error->struct_size <= offsetof(tm_error, text)) return 0;
  const size_t room = error->struct_size - offsetof(tm_error, text);
  return room < sizeof error->text ? room : sizeof error->text;
}

static void record(tm_error *error, tm_status status, int64_t native_code, const char *format, va_list arguments) {
  const size_t room = text_room(error);
  if (room == 0) return;
  error->code = status;
  error->native_code = native_code;
  if (vsnprintf(error->text, room, format, arguments) < 0) error->text[0] = '\0';
}

tm_status tm_fail(tm_error *error, tm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  record(error, status, 0, format, arguments);
  va_end(arguments);
  return status;
}

tm_status tm_fail_native(tm_error *error, tm_status status, int64_t native_code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  record(error, status, native_code, format, arguments);
  va_end(arguments);
  return status;
}

void tm_error_prefix(tm_error *error, const char *format, ...) {
  const size_t room = text_room(error);
  if (room == 0) return;
  char prefix[sizeof error->text];
  char whole[sizeof error->text];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(prefix, sizeof prefix, format, arguments);
  va_end(arguments);
  if (length < 0 || snprintf(whole, room, "%s: %s", prefix, error->text) < 0) return;
  memcpy(error->text, whole, strlen(whole) + 1);
}

const char *tm_status_name(tm_status status) {
  switch (status) {
    case TM_OK: return "ok";
    case TM_UNSUPPORTED: return "unsupported";
    case TM_PENDING: return "pending";
    case TM_BUSY: return "busy";
    case TM_STALE: return "stale";
    case TM_END: return "end";
    case TM_ERROR_ARGUMENT: return "invalid argument";
    case TM_ERROR_NOT_FOUND: return "not found";
    case TM_ERROR_NO_MEMORY: return "out of memory";
    case TM_ERROR_NO_DEVICE: return "no device";
    case TM_ERROR_DEVICE_LOST: return "device lost";
    case TM_ERROR_IO: return "input/output error";
    case TM_ERROR_CORRUPT: return "corrupt";
    case TM_ERROR_CHANGED: return "changed while read";
    case TM_ERROR_CANCELLED: return "cancelled";
    case TM_ERROR_PREDECESSOR: return "predecessor failed";
    case TM_ERROR_LIMIT: return "limit exceeded";
    case TM_ERROR_INTERNAL: return "internal error";
    default: return "unknown status";
  }
}
