/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - promises that were broken.  A device that failed at what it had said yes to is not asked for that kind of
 * operation again: a record is (device, operation, format of the first operand).  [any thread]
 */
#ifndef TM_SCHEDULE_HEALTH_H
#define TM_SCHEDULE_HEALTH_H

#include "plugin/inventory.h"

#define TM_HEALTH_REASON_BYTES 200

typedef struct tm_health_record {
  uint32_t device;
  uint32_t op;
  uint32_t format;
  uint32_t count;
  char     reason[TM_HEALTH_REASON_BYTES];
} tm_health_record;

typedef struct tm_health {
  tm_memory        *memory;
  tm_mutex          lock;
  tm_health_record *records;
  uint32_t          count;
  uint32_t          capacity;
} tm_health;

tm_status tm_health_init(tm_health *health, tm_memory *memory);
void      tm_health_deinit(tm_health *health);

/* Counts a broken promise and quarantines the key; a device that breaks many is quarantined as a whole. */
void tm_health_record_violation(tm_health *health, tm_device_slot *device, const tm_operation *operation, const char *reason);

/* Whether the key is quarantined; copies why. */
bool tm_health_is_quarantined(tm_health *health, uint32_t device, const tm_operation *operation,
                              char reason[TM_HEALTH_REASON_BYTES]);

#endif
