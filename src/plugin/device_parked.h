/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_parked.h - what calls and work that were left behind on a device may still touch.  Whoever has no use for such a
 * thing any more discards it: it goes at once, or waits until everything that was left behind has ended.  [any thread]
 */
#ifndef TM_PLUGIN_DEVICE_PARKED_H
#define TM_PLUGIN_DEVICE_PARKED_H

#include "plugin/inventory.h"

/* One of the three, with its size if it has one. */
typedef struct tm_parked {
  struct tm_parked *next;
  tm_kernel *kernel;
  tm_buffer *buffer;
  void      *memory;            /* of the inventory's */
  uint64_t   bytes;
  const _Atomic uint32_t *cancelled;    /* not 0: whoever discards it wants to go; NULL: never */
} tm_parked;

/* For whoever only looks, and has time for calls that are over in a moment. */
extern const _Atomic uint32_t tm_at_once;

/* On a device that is stuck it stays for ever. */
void tm_device_discard(tm_device_slot *device, const tm_parked *what);

/* Discards for good what waited, if nothing is left behind any more. */
void tm_device_free_parked(tm_device_slot *device);

/* A space that is host memory needs nothing of the backend: a buffer is its address. */
bool tm_device_has_host_buffers(const tm_device_slot *device);

#endif
