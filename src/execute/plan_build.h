/* SPDX-License-Identifier: Apache-2.0 */
/* plan_build.h - the stages in which a plan's program comes about (plan.h): actions, then locations and slots, then memory and
   launches. */
#ifndef TM_EXECUTE_PLAN_BUILD_H
#define TM_EXECUTE_PLAN_BUILD_H

#include "execute/plan.h"
#include "graph/liveness.h"

/* What only building needs. */
typedef struct tm_plan_build {
  tm_plan               *plan;
  tm_plan_program       *program;
  const tm_graph        *graph;
  const tm_graph_choice *choice;
  tm_liveness            liveness;
  tm_arena               arena;
  bool                   waits;         /* after each node for what was enqueued: memory is free again as soon as can be */
  uint32_t              *locations;     /* [solver value of the root][memory] -> location, TM_PLAN_NONE */
} tm_plan_build;

/* Who may write in place, and with that the lives of values.  Fills build->liveness and program->roots. */
tm_status tm_plan_build_lives(tm_plan_build *build, tm_error *error);
/* Fills actions, locations and operands. */
tm_status tm_plan_build_actions(tm_plan_build *build, tm_error *error);
/* Gives locations slots, and tells what each memory must hold. */
tm_status tm_plan_build_slots(tm_plan_build *build, tm_error *error);
/* Tells launches what they bind; addresses and buffers come with tm_plan_bind. */
tm_status tm_plan_build_launches(tm_plan_build *build, tm_error *error);

/* What the action's launch needs beside its operands. */
tm_status tm_plan_build_workspace(const tm_plan_program *program, const tm_plan_action *action, uint64_t *out_bytes,
                                  tm_error *error);

/* The location of a root in a memory, made if there is none. */
tm_status tm_plan_build_location(tm_plan_build *build, uint32_t root, uint32_t memory, uint32_t *out_location, tm_error *error);

/* ---- memory and kernels (plan_bind.h) ---- */

/* An element of growing arrays in tm_memory; NULL without memory. */
void *tm_plan_build_push(tm_memory *memory, void **array, uint32_t *count, uint64_t *capacity, uint64_t element_bytes);

#endif
