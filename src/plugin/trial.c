/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/trial.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/format.h"

tm_work_kind tm_work_kind_of(const tm_operation *operation) {
  tm_work_kind kind;
  memset(&kind, 0, sizeof kind);
  kind.op = operation->op;
  kind.format_count = (uint32_t)tm_min_u64(TM_MAX_OPERANDS, (uint64_t)operation->input_count + operation->output_count);
  for (uint32_t i = 0; i < kind.format_count; i++) kind.formats[i] = operation->operands[i].format;
  return kind;
}

bool tm_work_kind_equal(const tm_work_kind *a, const tm_work_kind *b) {
  return a->op == b->op && a->format_count == b->format_count &&
         memcmp(a->formats, b->formats, a->format_count * sizeof a->formats[0]) == 0;
}

void tm_work_kind_formats(const tm_work_kind *kind, char *text, uint64_t capacity) {
  uint64_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < kind->format_count && used < capacity; i++) {
    const tm_format_info *info = tm_format_find(kind->formats[i]);
    const char *separator = i == 0 ? "" : ",";
    const int length = info != NULL ? snprintf(text + used, capacity - used, "%s%s", separator, info->name)
                                    : snprintf(text + used, capacity - used, "%s0x%x", separator, kind->formats[i]);
    used += length < 0 ? 0 : (uint64_t)length;
  }
}

static tm_trial *find(const tm_device_slot *device, const tm_work_kind *kind) {
  for (tm_trial *trial = device->trials; trial != NULL; trial = trial->next)
    if (tm_work_kind_equal(&trial->kind, kind)) return trial;
  return NULL;
}

tm_trial *tm_trial_find(tm_device_slot *device, const tm_operation *operation) {
  if (!device->is_watched) return NULL;
  const tm_work_kind kind = tm_work_kind_of(operation);
  tm_mutex_lock(&device->lock);
  tm_trial *trial = find(device, &kind);
  if (trial == NULL) {
    trial = tm_memory_try_alloc(device->backend->inventory->memory, sizeof *trial, 0);
    if (trial != NULL) {
      trial->kind = kind;
      trial->next = device->trials;
      atomic_init(&trial->clean_runs, 0);
      device->trials = trial;
    }
  }
  tm_mutex_unlock(&device->lock);
  return trial;
}

void tm_trial_free_all(tm_device_slot *device) {
  while (device->trials != NULL) {
    tm_trial *trial = device->trials;
    device->trials = trial->next;
    tm_memory_free(device->backend->inventory->memory, trial, sizeof *trial);
  }
}
