/* SPDX-License-Identifier: Apache-2.0 */
/* merge_parts.h - the tensors of one name that take part in a merge, while it is being decided on. */
#ifndef TM_JOBS_MERGE_PARTS_H
#define TM_JOBS_MERGE_PARTS_H

#include "jobs/merge_settings.h"

typedef struct tm_merge_part {
  const tm_archive_tensor *tensor;      /* NULL: the source has none of that name */
  uint64_t                 index;
  uint32_t                 source;
  double                   weight, density;
} tm_merge_part;

/* A base first, then models in the order in which they are named. */
typedef struct tm_merge_parts {
  tm_merge_part items[TM_MERGE_MOST_SOURCES];
  uint32_t      count;
} tm_merge_parts;

/* All that the method has a use for: models of weight 0 have none, unless they are kept and there is no other.  A checkpoint that is
   named twice is there once where that comes to the same.   TM_ERROR_ARGUMENT (no model has any weight) */
tm_status tm_merge_parts_gather(const tm_merge_settings *settings, tm_string name, const tm_merge_figures *figures,
                                tm_merge_parts *out_parts, tm_error *error);

static inline bool tm_merge_is_base(const tm_merge_settings *settings, const tm_merge_part *part) {
  return part->source >= settings->model_count;
}

/* Removes part `index`. */
void tm_merge_parts_drop(tm_merge_parts *parts, uint32_t index);
/* Only part `index` stays, with weight 1. */
void tm_merge_parts_keep(tm_merge_parts *parts, uint32_t index);
/* Models by weight, then density, then what they hold; those that hold the same stay in their order. */
void tm_merge_parts_sort(const tm_merge_settings *settings, tm_merge_parts *parts);

/* The names of those (not) `has_tensor`, as people call them; cut and ending in "..." if they are many. */
void tm_merge_parts_name(const tm_merge_settings *settings, const tm_merge_parts *parts, bool has_tensor, char *out_text,
                         uint64_t capacity);

/* Whether all hold the same bytes of one format and shape.   As tm_archive_read, TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY */
tm_status tm_merge_parts_compare(const tm_merge_settings *settings, tm_memory *memory, const tm_merge_parts *parts,
                                 bool *out_are_equal, tm_error *error);

#endif
