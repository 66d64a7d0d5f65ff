/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/trial.h"

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
      atomic_init(&trial->lasting, NULL);
      atomic_init(&trial->worked_ns, 0);
      atomic_init(&trial->checked_ns, 0);
      atomic_init(&trial->check_count, 0);
      atomic_init(&trial->run_count, 0);
      device->trials = trial;
    }
  }
  tm_mutex_unlock(&device->lock);
  return trial;
}

bool tm_trial_is_passed(tm_device_slot *device, const tm_work_kind *kind) {
  bool is_passed = false;
  tm_mutex_lock(&device->lock);
  for (const tm_trial *trial = device->trials; trial != NULL; trial = trial->next)
    is_passed |= (kind->op == TM_OP_NONE || tm_work_kind_equal(&trial->kind, kind)) && tm_trial_is_over(trial);
  tm_mutex_unlock(&device->lock);
  return is_passed;
}

void tm_trial_free_all(tm_device_slot *device) {
  while (device->trials != NULL) {
    tm_trial *trial = device->trials;
    device->trials = trial->next;
    tm_memory_free(device->backend->inventory->memory, trial, sizeof *trial);
  }
}
