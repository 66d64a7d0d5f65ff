/* SPDX-License-Identifier: Apache-2.0 */
/* label_groups.h - the devices behind labels: labels of equal rank are one device's, whatever operation they belong to. */
#ifndef TM_SOLVER_LABEL_GROUPS_H
#define TM_SOLVER_LABEL_GROUPS_H

#include "solver/problem_index.h"

typedef struct tm_label_groups {
  uint32_t  count;
  uint32_t *ranks;              /* [group], ascending */
  uint32_t *of_label;           /* [label]: its group */
} tm_label_groups;

tm_status tm_label_groups_make(const tm_solver_problem *problem, tm_arena *arena, tm_label_groups *out_groups, tm_error *error);

/* Among two labels of one operation that cost the same: does `a` go first?  By what they are, never by where they stand, as
   far as they differ. */
bool tm_label_goes_first(const tm_solver_problem *problem, uint32_t a, uint32_t b);

#endif
