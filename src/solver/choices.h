/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choices.h - the labels that placement has to tell apart: of those that read and write the same memories the cheapest
 * one.  An operation's choices are in order of rank, so that the first of equals is the one to take, whatever order the
 * labels came in.
 */
#ifndef TM_SOLVER_CHOICES_H
#define TM_SOLVER_CHOICES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "solver/problem.h"

typedef struct tm_choice {
  uint64_t cost_ns;
  uint32_t input_memory;
  uint32_t output_memory;
  uint32_t label;
} tm_choice;

typedef struct tm_choices {
  tm_choice *items;
  uint32_t  *first;             /* [op_count + 1] into items */
  uint32_t  *of_label;          /* [label_count]: the choice that stands for it, TM_SOLVER_NONE for one that cannot be */
} tm_choices;

/* TM_ERROR_NO_DEVICE names the first operation without a label that can be.  Lives in the arena. */
tm_status tm_choices_init(tm_choices *choices, const tm_solver_problem *problem, tm_arena *arena, tm_error *error);
/* Forgets the marked ones; their labels map to none. */
void      tm_choices_drop(tm_choices *choices, const tm_solver_problem *problem, const bool *is_dropped, uint32_t *scratch);

static inline uint32_t tm_choices_count(const tm_choices *choices, uint32_t op) {
  return choices->first[op + 1] - choices->first[op];
}

#endif
