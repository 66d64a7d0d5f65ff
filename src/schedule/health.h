/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - promises that were broken.  A device that failed at what it had said yes to is not asked for that kind of work
 * again, in this process and, where state is kept, in later ones, until its build changes or it is forgiven.  [any thread]
 */
#ifndef TM_SCHEDULE_HEALTH_H
#define TM_SCHEDULE_HEALTH_H

#include "schedule/health_file.h"

#define TM_HEALTH_REASON_BYTES 200
#define TM_HEALTH_FORMATS_BYTES 96

/* Stays where it is until the end; but for what is atomic it never changes. */
typedef struct tm_health_record {
  struct tm_health_record *next;
  tm_device_slot *device;
  tm_work_kind    kind;
  _Atomic uint64_t count;
  _Atomic bool    is_forgiven;
  bool            is_remembered;        /* from an earlier process */
  char            formats[TM_HEALTH_FORMATS_BYTES];
  char            reason[TM_HEALTH_REASON_BYTES];       /* the first one */
} tm_health_record;

typedef struct tm_health {
  tm_memory        *memory;
  tm_inventory     *inventory;
  tm_mutex          lock;
  tm_health_record *records;            /* oldest first */
  tm_health_file    file;               /* folder NULL: nothing is kept */
  char             *folder;
  bool              has_suspects;       /* the file has some about devices that are here */
} tm_health;

/* state_folder: where to remember, NULL: nowhere.  What is found there counts from now on; what a process that crashed left
   behind, once it is not the first to end in that kind of work.   TM_ERROR_NO_MEMORY */
tm_status tm_health_init(tm_health *health, tm_memory *memory, tm_inventory *inventory, const char *state_folder);
/* This process ends well: what proved itself in it is not suspected any more.  Before the devices go. */
void      tm_health_acquit(tm_health *health);
void      tm_health_deinit(tm_health *health);

/* Counts a broken promise and quarantines the kind of work; a device that breaks many is quarantined as a whole. */
void tm_health_record_violation(tm_health *health, tm_device_slot *device, const tm_operation *operation, const char *reason);

/* Whether the kind of work is quarantined; copies why. */
bool tm_health_is_quarantined(tm_health *health, const tm_device_slot *device, const tm_operation *operation,
                              char reason[TM_HEALTH_REASON_BYTES]);

/* The record at `index` of those in force; NULL past the last. */
const tm_health_record *tm_health_at(tm_health *health, uint32_t index);
/* How often the device broke promises that are held against it, in earlier processes too: the sum of its records. */
uint64_t tm_health_count_of(tm_health *health, const tm_device_slot *device);
/* Why the device as such is quarantined; NULL if no record says so. */
const char *tm_health_device_reason(tm_health *health, const tm_device_slot *device);

/* Forgets all that is held against a backend or a device of that name, here and on disk, and makes it ready again unless it
   hung in this process.  Returns the number of records. */
uint32_t tm_health_forgive(tm_health *health, const char *name);

#endif
