/* SPDX-License-Identifier: Apache-2.0 */
/* merge_settings.h - what a caller wants of a merge, checked and kept; and what that is for one tensor. */
#ifndef TM_JOBS_MERGE_SETTINGS_H
#define TM_JOBS_MERGE_SETTINGS_H

#include "base/arena.h"
#include "jobs/selection.h"
#include "tensormorph/tensormorph.h"

/* Models, in the order in which they are named, then the base if there is one. */
#define TM_MERGE_MOST_SOURCES (TM_MERGE_MOST_MODELS + 1u)

typedef struct tm_merge_settings {
  uint32_t method;                      /* TM_MERGE_* */
  uint32_t model_count;
  uint32_t source_count;                /* one more with a base */
  uint32_t lead;                        /* the source whose order, metadata and formats the result has */
  const tm_job_source *sources;
  const char *const   *names;           /* of the sources: the ends of their paths, as long as it takes to tell them apart */
  const uint32_t      *same_as;         /* of the sources: the first one that is the same checkpoint */
  const uint32_t      *ranks;           /* of the sources: by what they hold (merge_order.h) */
  const tm_merge_rule *rules;           /* those without a pattern first */
  uint32_t rule_count;
  uint32_t flags;                       /* TM_MERGE_KEEP_WEIGHTS ... */
  uint32_t missing, rows, other;        /* TM_MERGE_MISSING_* ... */
  uint32_t writer_format;               /* TM_WRITER_* */
  uint64_t seed;
  uint64_t shard_bytes;
  const char *path;                     /* of the result */
  const volatile uint32_t *cancelled;   /* while the plan is made: see cancel_wish.h */
} tm_merge_settings;

/* What rules say of one tensor. */
typedef struct tm_merge_figures {
  double   weights[TM_MERGE_MOST_MODELS];
  double   densities[TM_MERGE_MOST_MODELS];
  double   t;
  double   scale;
  uint32_t format;                      /* TM_FORMAT_NONE: as it is where the result is led from */
} tm_merge_figures;

static inline bool tm_merge_has_base(const tm_merge_settings *settings) { return settings->source_count > settings->model_count; }

/* Copies what is given into the arena.  `given` holds the settings with the caller's own lists, and writer_format may be 0; names,
   same_as and ranks are not looked at.   As tm_merge_order_find, TM_ERROR_ARGUMENT, TM_ERROR_NOT_FOUND (a pattern that matches
   nothing) */
tm_status tm_merge_settings_make(const tm_merge_settings *given, tm_arena *arena, tm_merge_settings *out_settings, tm_error *error);

void tm_merge_settings_apply(const tm_merge_settings *settings, tm_string name, tm_merge_figures *out_figures);

#endif
