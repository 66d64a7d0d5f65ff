/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - how much follows an operation, in the ways that list scheduling looks at it.  Means are exact wherever their
 * denominators are small: they are kept as integers, multiplied by `scale`, so that every compiler sees the same order and
 * true ties are ties.
 *
 *     upward    mean cost of the operation and of the longest way from it to the end, mean costs of copies included (HEFT)
 *     downward  the same from the start up to the operation, without its own cost (CPOP)
 *     outlook   by label: the least time from the operation's end to the end of all if everything after it ran at once and
 *               where that is best (PEFT's optimistic cost table); TM_SOLVER_NEVER: the label cannot be or leads nowhere
 *
 * Means of an operation are over its devices (ranks), each with the least that a label of it has; those of copies over the
 * pairs of different memories that labels write and read.
 */
#ifndef TM_SOLVER_RANKS_H
#define TM_SOLVER_RANKS_H

#include "solver/label_groups.h"

typedef struct tm_ranks {
  uint64_t  scale;
  uint64_t *mean_ns;            /* [op], times scale */
  uint64_t *mean_copy_ns;       /* [size class], times scale */
  uint64_t *upward_ns;          /* [op], times scale */
  uint64_t *downward_ns;        /* [op], times scale */
  uint64_t *mean_outlook_ns;    /* [op], times scale */
  uint64_t *outlook_ns;         /* [label] */
} tm_ranks;

/* TM_ERROR_NO_DEVICE names an operation that no label can run, or that nothing can be done with afterwards. */
tm_status tm_ranks_make(const tm_problem_index *index, const tm_label_groups *groups, tm_arena *arena, tm_ranks *out_ranks,
                        tm_error *error);

/* The way from each operation to the end for a choice of labels, its own cost included; not multiplied by anything. */
void tm_ranks_follow(const tm_problem_index *index, const uint32_t *labels, uint64_t *out_upward_ns);

#endif
