/* SPDX-License-Identifier: Apache-2.0 */
/* content_group.h - tensors of two sides, grouped by what is known of their content so far. */
#ifndef TM_JOBS_CONTENT_GROUP_H
#define TM_JOBS_CONTENT_GROUP_H

#include <stdbool.h>

#include "base/keyed_order.h"
#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_content_entry {
  uint64_t key;                 /* equal: in one group */
  uint64_t tensor;
  uint32_t side;                /* 0 or 1 */
  bool     is_left;             /* it has no counterpart */
  bool     is_wanted;           /* and one is to be found */
  bool     is_constant;
  bool     is_kept;             /* tm_content_groups_drop leaves it */
} tm_content_entry;

typedef struct tm_content_groups {
  tm_memory        *memory;
  tm_content_entry *entries;    /* side 0, then side 1, each in its order */
  uint64_t          count;
  uint64_t          capacity;
  tm_keyed_item    *order;      /* in the order of keys; 2 * capacity */
  const _Atomic uint32_t *cancelled;
} tm_content_groups;

/* A range of `order`. */
typedef struct tm_content_group {
  uint64_t begin;
  uint64_t end;
} tm_content_group;

/* Room for `capacity` entries.   TM_ERROR_NO_MEMORY.  Whatever comes back, it must be deinitialised. */
tm_status tm_content_groups_init(tm_content_groups *groups, tm_memory *memory, uint64_t capacity, const _Atomic uint32_t *cancelled,
                                 tm_error *error);
void      tm_content_groups_deinit(tm_content_groups *groups);

/* The group that follows; of {0, 0} the first one.  false: there is none. */
bool tm_content_groups_next(const tm_content_groups *groups, tm_content_group *group);
tm_content_entry *tm_content_groups_entry(const tm_content_groups *groups, uint64_t place);

/* Drops what nobody is wanted for: keeps of each group the entries without a counterpart, and the others where the other side wants
   one, as long as there are entries on both sides.  Before that there are no groups, and after it they are in order.
   TM_ERROR_CANCELLED */
tm_status tm_content_groups_drop(tm_content_groups *groups);

#endif
