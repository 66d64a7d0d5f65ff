/* SPDX-License-Identifier: Apache-2.0 */
/* What this process is doing with plugins, as its marks say. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "plugin/crash_marks.h"
#include "tensormorph/tensormorph.h"

#define CALL_BYTES 256

typedef struct call_list {
  char    *text;
  uint64_t capacity, used;
} call_list;

static bool is_listed(const call_list *list, const char *call) {
  const size_t length = strlen(call);
  for (const char *at = strstr(list->text, call); at != NULL; at = strstr(at + 1, call))
    if ((at == list->text || at[-1] == ' ') && (at[length] == '\0' || at[length] == ',')) return true;
  return false;
}

static void add_call(void *context, const tm_found_mark *mark) {
  call_list *list = context;
  char call[CALL_BYTES];
  (void)snprintf(call, sizeof call, "%s (%s)", mark->backend, mark->call);
  if (is_listed(list, call) || list->used + 1 >= list->capacity) return;
  list->used += (uint64_t)snprintf(list->text + list->used, (size_t)(list->capacity - list->used), "%s%s",
                                   list->used == 0 ? "" : ", ", call);
}

void tm_running_calls_describe(const char *state_folder, char *out_text, uint64_t capacity) {
  tm_memory memory;
  call_list list = { out_text, capacity, 0 };
  out_text[0] = '\0';
  if (state_folder == NULL || state_folder[0] == '\0') return;
  tm_memory_init(&memory, 0);
  tm_crash_marks_visit_own(&memory, state_folder, add_call, &list);
}
