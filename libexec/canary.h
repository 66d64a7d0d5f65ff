/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canary.h - what a device does with one small operation of every kind that it claims, compared with the reference.  This
 * finds what is broken on this machine, quickly; whether every claim holds is what the conformance run finds out.
 */
#ifndef TM_LIBEXEC_CANARY_H
#define TM_LIBEXEC_CANARY_H

#include "plugin/inventory.h"

/* Devices of a backend by their indices. */
typedef struct canary_range {
  uint32_t count;
  uint32_t first;
  uint32_t last;
} canary_range;

/* Faults of a backend as they are found; `busy`: a device could not be tried now. */
typedef struct canary_report {
  tm_arena         *arena;
  tm_backend_fault *faults;
  uint32_t          count;
  uint32_t          capacity;
  bool              busy;
  canary_range      unasked;            /* for which there was no time to ask about every kind of operation */
  canary_range      unrun;              /* on which not every kind that it claims was run */
} canary_report;

/* Asks the device about one operation of each kind, and about sound ones of odd sizes, until `end_ns`; what it answers does
   not matter. */
void canary_ask(tm_device_slot *device, uint64_t end_ns, canary_report *report);

/* Opens the device and runs one operation of every kind that it claims, until `end_ns`, but none whose set-up is declared to
   last beyond `last_ns`.  A device that is busy or lacks memory did nothing wrong. */
void canary_run(tm_device_slot *device, uint64_t end_ns, uint64_t last_ns, canary_report *report);

#endif
