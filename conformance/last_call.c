/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/last_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define CALL(name) { offsetof(tm_accelerator_backend_plugin, name), #name }

static const struct { size_t offset; const char *name; } calls[] = {
  CALL(init), CALL(shutdown), CALL(device_info), CALL(open), CALL(close), CALL(query), CALL(prepare), CALL(release),
  CALL(buffer_create), CALL(buffer_import), CALL(buffer_destroy), CALL(upload), CALL(download), CALL(copy), CALL(launch),
  CALL(flush), CALL(wait), CALL(cancel),
};

void last_call_note(last_call *call, size_t offset) {
  if (call == NULL) return;
  atomic_store_explicit(&call->offset, (uint32_t)offset, memory_order_relaxed);
  atomic_fetch_add_explicit(&call->beat, 1, memory_order_relaxed);
}

static int has_subject(size_t offset) {
  return offset == offsetof(tm_accelerator_backend_plugin, query) || offset == offsetof(tm_accelerator_backend_plugin, prepare) ||
         offset == offsetof(tm_accelerator_backend_plugin, launch) || offset == offsetof(tm_accelerator_backend_plugin, wait) ||
         offset == offsetof(tm_accelerator_backend_plugin, release);
}

void last_call_misuse(last_call *call, const char *format, ...) {
  va_list arguments;
  if (call == NULL || atomic_exchange(&call->is_misused, 1) != 0) return;
  va_start(arguments, format);
  vsnprintf(call->misuse, sizeof call->misuse, format, arguments);
  va_end(arguments);
}

bool last_call_is_fenced(const last_call *call) {
  const uint32_t offset = atomic_load(&call->offset);
  return atomic_load(&call->is_fenced) != 0 &&
         (offset == offsetof(tm_accelerator_backend_plugin, launch) || offset == offsetof(tm_accelerator_backend_plugin, wait) ||
          offset == offsetof(tm_accelerator_backend_plugin, flush));
}

void last_call_describe(const last_call *call, char *text, size_t capacity) {
  const uint32_t offset = atomic_load(&call->offset);
  char subject[LAST_CALL_SUBJECT];
  text[0] = '\0';
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (calls[i].offset != offset) continue;
    (void)tm_text_escape(call->subject, strnlen(call->subject, sizeof call->subject), subject, sizeof subject);
    const int named = subject[0] != '\0' && has_subject(offset);
    snprintf(text, capacity, "; the last call was %s%s%s", calls[i].name, named ? ", of " : "", named ? subject : "");
  }
}
