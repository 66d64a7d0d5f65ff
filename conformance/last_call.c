/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/last_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define CALL(name) { offsetof(tm_accelerator_backend_plugin, name), #name }

static const struct { size_t offset; const char *name; } calls[] = {
  CALL(init), CALL(shutdown), CALL(device_info), CALL(open), CALL(close), CALL(query), CALL(prepare), CALL(release),
  CALL(buffer_create), CALL(buffer_import), CALL(buffer_destroy), CALL(upload), CALL(download), CALL(copy), CALL(launch),
  CALL(flush), CALL(wait), CALL(cancel),
};

/* Of this process, which a copy has from who made it. */
static _Atomic uint32_t own_offset;

static const char *name_of(uint32_t offset) {
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
    if (calls[i].offset == offset) return calls[i].name;
  return "its loading";
}

void last_call_own(last_call *call) {
  atomic_store(&own_offset, 0);
  atomic_store(&call->owner, (int32_t)getpid());
}

void last_call_end_copy(last_call *call) {
  const int32_t owner = atomic_load_explicit(&call->owner, memory_order_relaxed);
  if (owner == 0 || owner == (int32_t)getpid()) return;
  last_call_misuse(call, "%s came back twice: the worker has a copy of itself", name_of(atomic_load(&own_offset)));
  _exit(0);
}

void last_call_note(last_call *call, size_t offset) {
  if (call == NULL) return;
  last_call_end_copy(call);
  atomic_store_explicit(&own_offset, (uint32_t)offset, memory_order_relaxed);
  atomic_store_explicit(&call->offset, (uint32_t)offset, memory_order_relaxed);
  atomic_fetch_add_explicit(&call->beat, 1, memory_order_relaxed);
}

void last_call_time_question(last_call *call, uint64_t took_ns) {
  if (call == NULL) return;
  const uint32_t number = atomic_fetch_add_explicit(&call->question_count, 1, memory_order_relaxed);
  atomic_store_explicit(&call->question_ns[number % LAST_CALL_QUESTIONS], took_ns, memory_order_relaxed);
}

static int by_time(const void *left, const void *right) {
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

uint64_t last_call_median_ns(const last_call *call, uint32_t *out_count) {
  uint64_t times[LAST_CALL_QUESTIONS];
  const uint32_t asked = atomic_load(&call->question_count), count = asked < LAST_CALL_QUESTIONS ? asked : LAST_CALL_QUESTIONS;
  for (uint32_t i = 0; i < count; i++) times[i] = atomic_load(&call->question_ns[i]);
  qsort(times, count, sizeof times[0], by_time);
  *out_count = count;
  return count == 0 ? 0 : times[count / 2];
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
