/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/write_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "formats/standing_files.h"

struct tm_write_input {
  tm_path_identity identity;
};

static int compare(const void *a, const void *b) {
  const tm_path_identity *first = &((const struct tm_write_input *)a)->identity;
  const tm_path_identity *second = &((const struct tm_write_input *)b)->identity;
  if (first->device != second->device) return first->device < second->device ? -1 : 1;
  return first->number == second->number ? 0 : first->number < second->number ? -1 : 1;
}

tm_status tm_write_inputs_init(tm_write_inputs *inputs, tm_memory *memory, const char *const *paths, uint64_t count,
                               tm_error *error) {
  inputs->memory = memory;
  inputs->items = tm_memory_calloc(memory, count, sizeof *inputs->items);
  if (inputs->items == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write a checkpoint");
  inputs->capacity = count;
  for (uint64_t i = 0; i < count; i++)
    if (tm_path_identify(paths[i], &inputs->items[inputs->count].identity)) inputs->count++;
  if (inputs->count > 1) qsort(inputs->items, (size_t)inputs->count, sizeof *inputs->items, compare);
  return TM_OK;
}

void tm_write_inputs_deinit(tm_write_inputs *inputs) {
  if (inputs->memory != NULL) tm_memory_free(inputs->memory, inputs->items, inputs->capacity * sizeof *inputs->items);
  *inputs = (tm_write_inputs){ .memory = inputs->memory };
}

tm_status tm_write_inputs_check(const tm_write_inputs *inputs, tm_arena *arena, const char *folder, const char *name,
                                tm_error *error) {
  struct tm_write_input wanted;
  char label[256];
  const char *path = tm_standing_path(arena, folder, name);
  if (path == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write a checkpoint");
  if (inputs->count == 0 || !tm_path_identify(path, &wanted.identity)) return TM_OK;
  if (bsearch(&wanted, inputs->items, (size_t)inputs->count, sizeof *inputs->items, compare) == NULL) return TM_OK;
  (void)tm_text_escape(path, strlen(path), label, sizeof label);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: is an input too, and would be written over while it is read; write to another name",
                 label);
}
