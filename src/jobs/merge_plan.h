/* SPDX-License-Identifier: Apache-2.0 */
/* merge_plan.h - everything that a merge will do, decided before it does anything. */
#ifndef TM_JOBS_MERGE_PLAN_H
#define TM_JOBS_MERGE_PLAN_H

#include <stdatomic.h>

#include "base/thread.h"
#include "execute/runner.h"
#include "formats/checkpoint_writer.h"
#include "jobs/merge_item.h"

#define TM_MERGE_MOST_PROBLEMS 16u
#define TM_MERGE_MOST_NOTES 32u

struct tm_merge_plan {
  tm_memory            *memory;
  tm_inventory         *inventory;
  tm_runner             runner;
  tm_arena              arena;          /* all below; while rows are asked for under the lock */
  tm_mutex              lock;
  bool                  has_lock;
  tm_merge_settings     settings;
  tm_merge_item        *items;          /* results in their order, then those that are left out */
  uint64_t              item_count, item_capacity;
  tm_checkpoint_writer *writer;         /* NULL: the result cannot be arranged */
  _Atomic(const char *) provenance;     /* without hashes, until the job has all of them */
  const char           *problems[TM_MERGE_MOST_PROBLEMS];
  const char           *notes[TM_MERGE_MOST_NOTES];
  uint32_t              problem_count, note_count;
  tm_merge_description  totals;
  uint64_t              unit_bytes;     /* memory for a unit of merge_tiles.h of the most demanding tensor */
  uint64_t              tile_bytes;     /* and for its tiles, as far as memory allows */
  uint64_t              copy_unit_bytes;        /* tm_merge_copy_unit of the most demanding tensor */
  atomic_bool           is_used;
};

/* What tm_merge_plan_create has been asked for.   As there */
tm_status tm_merge_plan_make(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_merge_settings *given,
                             tm_merge_plan **out_plan, tm_error *error);

/* What row `row` is made of.   false: it has no such part */
bool tm_merge_plan_part_at(tm_merge_plan *plan, uint64_t row, uint32_t part, tm_merge_part_description *out_part);
/* What became of a row whose method is slerp.   TM_ERROR_NO_MEMORY */
tm_status tm_merge_plan_keep_arc(tm_merge_plan *plan, uint64_t row, const tm_merge_arc *arc);

/* Appends a sentence; past the last place it is dropped. */
void tm_merge_plan_add_note(tm_merge_plan *plan, const char *text);
void tm_merge_plan_add_problem(tm_merge_plan *plan, const char *text);

#endif
