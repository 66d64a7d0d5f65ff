/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_affinity.h - of many names on two sides, which belong together: those with the same numbers first (the layer), and of them
 * those that end alike, component by component ("attn.q.weight").
 */
#ifndef TM_JOBS_NAME_AFFINITY_H
#define TM_JOBS_NAME_AFFINITY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/memory.h"
#include "tensormorph/types.h"

#define TM_NO_PARTNER UINT64_MAX

typedef struct tm_named_item {
  tm_string name;
  uint64_t  item;               /* the caller's number; those of a side stand for its order */
  uint32_t  side;               /* 0 or 1 */
  uint32_t  component_count;    /* this and what follows is set here */
  uint64_t  numbers;            /* a hash of the numbers in the name */
  uint64_t  key;                /* of them and of the components looked at, the first of which is at: */
  uint64_t  begin;
  uint64_t  partner;            /* an item of the other side, or TM_NO_PARTNER */
} tm_named_item;

/* Fills in partners, in linear time.  All of the smaller side get one; with `only_close` a pair has the same numbers and the last
   two components in common, and nobody else of either side does; or it has the same numbers, and there are as many of these on one
   side as on the other.  `cancelled` may be NULL.   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED */
tm_status tm_name_affinity_match(tm_memory *memory, tm_named_item *items, uint64_t count, bool only_close,
                                 const _Atomic uint32_t *cancelled);

#endif
