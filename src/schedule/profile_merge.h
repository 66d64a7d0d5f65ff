/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_merge.h - profiles of any origin put together: whatever was learned about one thing becomes one record.  For files;
 * nothing here knows which devices there are.  Not thread-safe.
 */
#ifndef TM_SCHEDULE_PROFILE_MERGE_H
#define TM_SCHEDULE_PROFILE_MERGE_H

#include "schedule/profile_text.h"

#define TM_MOST_PROFILE_OWNERS 256u

/* A device or link that records are about. */
typedef struct tm_profile_owner {
  uint64_t          fingerprint;
  bool              is_named;           /* device and link below were read */
  bool              is_link;
  bool              is_dropped;
  tm_profile_device device;
  tm_correction_link link;
} tm_profile_owner;

typedef struct tm_profile_merge {
  tm_correction     entries;            /* the owner of each is an index into `owners` */
  tm_profile_owner *owners;             /* TM_MOST_PROFILE_OWNERS */
  uint32_t          owner_count;
  uint64_t          generation;         /* of the last header that was taken */
} tm_profile_merge;

tm_status tm_profile_merge_init(tm_profile_merge *merge, tm_memory *memory);
void      tm_profile_merge_deinit(tm_profile_merge *merge);

/* A tm_profile_record_fn; `context` is the merge.  What there is no room for is left out. */
void tm_profile_merge_take(void *context, const tm_profile_record *record);

/* Leaves of each thing only what rests on more measurements than `known` has of it, to take the place of that: who takes the
   same twice knows no more than before. */
void tm_profile_merge_keep_news(tm_profile_merge *merge, const tm_profile_merge *known);

/* Who records are about, then what is known of them. */
void tm_profile_merge_visit(tm_profile_merge *merge, tm_profile_record_fn visit, void *context);

/* The whole as text under a header of that generation; free *out_text with *out_room.   TM_ERROR_NO_MEMORY */
tm_status tm_profile_merge_print(tm_profile_merge *merge, uint64_t generation, char **out_text, uint64_t *out_bytes, uint64_t *out_room);

#endif
