/* SPDX-License-Identifier: Apache-2.0 */
/* composed_numerics.h - what is left of a promise after what a lowering does before and after. */
#ifndef TM_SCHEDULE_COMPOSED_NUMERICS_H
#define TM_SCHEDULE_COMPOSED_NUMERICS_H

#include "schedule/lowering.h"

/* The normalized mean square error that a quantized product keeps; each run is checked against it (execute/quantized_run.h). */
#define TM_QUANTIZED_ERROR 0.01

/* The promise of both together: the weaker one. */
void tm_numerics_join(const tm_answer *other, tm_answer *answer);

/* `answer` is the promise for what the lowering leaves; becomes that for the whole, whose output has `y_format`. */
void tm_numerics_compose(const tm_lowering *lowering, uint32_t y_format, tm_answer *answer);

#endif
