/* SPDX-License-Identifier: Apache-2.0 */
/* cpop.h - critical path on a processor: the longest way through a graph by mean costs, on the device that runs it fastest. */
#ifndef TM_SOLVER_CPOP_H
#define TM_SOLVER_CPOP_H

#include "solver/ranks.h"

/* Fills [op] arrays: `out_urgency`, how long the longest way through each operation is; `out_forced`, for operations on the
   longest of all the chosen device's label, for others TM_SOLVER_NONE. */
tm_status tm_cpop_prepare(const tm_problem_index *index, const tm_label_groups *groups, const tm_ranks *ranks, tm_arena *arena,
                          uint64_t *out_urgency, uint32_t *out_forced, tm_error *error);

#endif
