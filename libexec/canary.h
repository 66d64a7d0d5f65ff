/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canary.h - what a device does with one small operation of every kind that it claims, compared with the reference.  This
 * finds what is broken on this machine, quickly; whether every claim holds is what the conformance run finds out.
 */
#ifndef TM_LIBEXEC_CANARY_H
#define TM_LIBEXEC_CANARY_H

#include "plugin/inventory.h"

/* Faults of a backend as they are found; `busy`: a device could not be tried now. */
typedef struct canary_report {
  tm_arena         *arena;
  tm_backend_fault *faults;
  uint32_t          count;
  uint32_t          capacity;
  bool              busy;
} canary_report;

/* Asks the device about sound operations of odd sizes, as many as have time; what it answers does not matter. */
void canary_ask(tm_device_slot *device);

/* Opens the device and runs what it claims, until `deadline_ns`.  A device that is busy or lacks memory did nothing wrong. */
void canary_run(tm_device_slot *device, uint64_t deadline_ns, canary_report *report);

#endif
