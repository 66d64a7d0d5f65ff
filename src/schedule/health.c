/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/health.h"

#include <stdio.h>
#include <string.h>

/* So many different broken kinds of operation and the device itself is not to be trusted. */
#define MOST_BROKEN_KEYS 4u

tm_status tm_health_init(tm_health *health, tm_memory *memory) {
  memset(health, 0, sizeof *health);
  health->memory = memory;
  return tm_mutex_init(&health->lock);
}

void tm_health_deinit(tm_health *health) {
  if (health->memory == NULL) return;
  tm_memory_free(health->memory, health->records, health->capacity * sizeof *health->records);
  tm_mutex_deinit(&health->lock);
}

static uint32_t first_format(const tm_operation *operation) {
  return operation->input_count + operation->output_count == 0 ? TM_FORMAT_NONE : operation->operands[0].format;
}

static tm_health_record *find(tm_health *health, uint32_t device, const tm_operation *operation) {
  for (uint32_t i = 0; i < health->count; i++) {
    tm_health_record *record = &health->records[i];
    if (record->device == device && record->op == operation->op && record->format == first_format(operation)) return record;
  }
  return NULL;
}

static tm_health_record *add(tm_health *health, uint32_t device, const tm_operation *operation) {
  if (health->count == health->capacity) {
    const uint32_t capacity = health->capacity == 0 ? 16 : health->capacity * 2;
    tm_health_record *grown = tm_memory_grow(health->memory, health->records, health->capacity, capacity, sizeof *grown);
    if (grown == NULL) return NULL;
    health->records = grown;
    health->capacity = capacity;
  }
  tm_health_record *record = &health->records[health->count++];
  memset(record, 0, sizeof *record);
  record->device = device;
  record->op = operation->op;
  record->format = first_format(operation);
  return record;
}

static uint32_t count_keys(const tm_health *health, uint32_t device) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < health->count; i++) count += health->records[i].device == device;
  return count;
}

void tm_health_record_violation(tm_health *health, tm_device_slot *device, const tm_operation *operation, const char *reason) {
  atomic_fetch_add(&device->violation_count, 1);
  tm_mutex_lock(&health->lock);
  tm_health_record *record = find(health, device->index, operation);
  if (record == NULL) record = add(health, device->index, operation);
  if (record != NULL) {
    record->count++;
    snprintf(record->reason, sizeof record->reason, "%.*s", (int)sizeof record->reason - 1, reason);
  }
  const bool untrusted = count_keys(health, device->index) >= MOST_BROKEN_KEYS;
  tm_mutex_unlock(&health->lock);
  atomic_fetch_add(&device->backend->inventory->generation, 1);
  if (untrusted) tm_inventory_retire(device, TM_DEVICE_QUARANTINED);
}

bool tm_health_is_quarantined(tm_health *health, uint32_t device, const tm_operation *operation,
                              char reason[TM_HEALTH_REASON_BYTES]) {
  tm_mutex_lock(&health->lock);
  const tm_health_record *record = find(health, device, operation);
  if (record != NULL) memcpy(reason, record->reason, TM_HEALTH_REASON_BYTES);
  tm_mutex_unlock(&health->lock);
  return record != NULL;
}
