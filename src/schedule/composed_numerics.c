/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/composed_numerics.h"

#include <math.h>

#include "schedule/float_range.h"

static void promise_nothing(tm_answer *answer) {
  answer->numerics = TM_NUMERICS_N4;
  answer->numerics_bound = 0;
}

static void promise_sum(tm_answer *answer, double bound, uint32_t growth, uint32_t accumulator) {
  answer->numerics = TM_NUMERICS_N2;
  answer->numerics_bound = bound;
  answer->growth = growth;
  answer->accumulator = accumulator;
}

static uint32_t coarser(uint32_t a, uint32_t b) { return tm_float_epsilon(a) >= tm_float_epsilon(b) ? a : b; }

void tm_numerics_join(const tm_answer *other, tm_answer *answer) {
  const uint32_t keeping = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE;
  const uint32_t both = answer->numerics_flags & other->numerics_flags & keeping;
  answer->numerics_flags = both | ((answer->numerics_flags | other->numerics_flags) & ~keeping);
  if (other->numerics < answer->numerics) return;
  if (other->numerics > answer->numerics) {
    answer->numerics = other->numerics;
    answer->numerics_bound = other->numerics_bound;
    answer->growth = other->growth;
    answer->accumulator = other->accumulator;
    return;
  }
  answer->numerics_bound = fmax(answer->numerics_bound, other->numerics_bound);
  if (other->growth > answer->growth) answer->growth = other->growth;
  answer->accumulator = coarser(answer->accumulator, other->accumulator);
}

/* Half an ulp for each rounding to another format. */
static void round_again(tm_answer *answer) {
  if (answer->numerics > TM_NUMERICS_N1) return;
  answer->numerics_bound = (answer->numerics == TM_NUMERICS_N0 ? 0 : answer->numerics_bound) + 1;
  answer->numerics = TM_NUMERICS_N1;
}

/* The canonical order of a sum goes by the index of its terms, which padding moved: other roundings of the same sum, each
   of at most n terms in f64. */
static void reorder_sum(tm_answer *answer, uint32_t y_format) {
  if (answer->numerics == TM_NUMERICS_N0) promise_sum(answer, 1, TM_GROWTH_LINEAR, TM_FORMAT_F64);
  else if (answer->numerics == TM_NUMERICS_N1) promise_sum(answer, 1 + answer->numerics_bound, TM_GROWTH_LINEAR, y_format);
}

/*
 * Partial results p_i of m parts, in a format with epsilon e, added one after the other.  With S = sum|terms| and parts
 * S_i: each p_i is off by c * growth * eps * S_i + e * |r_i| (class N2; N0 and N1 have c = 0 and |r_i| <= S_i), which adds
 * up to (c * growth * eps + e) * S; each of the m - 1 additions rounds a number of at most about S, which adds (m - 1) * e
 * * S.  Together c * growth * eps * S + m * e * S, written with the coarser of both epsilons.
 */
static void add_parts(const tm_split *split, tm_answer *answer) {
  const double e = tm_float_epsilon(split->sum.format), parts = (double)split->count;
  if (e == 0) {                         /* integers: exact, or nothing is known */
    if (answer->numerics != TM_NUMERICS_N0) promise_nothing(answer);
    return;
  }
  if (answer->numerics <= TM_NUMERICS_N1) {
    const double each = answer->numerics == TM_NUMERICS_N0 ? 0 : answer->numerics_bound;
    promise_sum(answer, each + parts, TM_GROWTH_ONE, split->sum.format);
  } else if (answer->numerics == TM_NUMERICS_N2) {
    const uint32_t accumulator = coarser(answer->accumulator, split->sum.format);
    const double eps = tm_float_epsilon(accumulator);
    const double bound = answer->numerics_bound * tm_float_epsilon(answer->accumulator) / eps + parts * e / eps;
    promise_sum(answer, bound, answer->growth, accumulator);
  } else {
    promise_nothing(answer);            /* parts that are off by little may cancel to a sum that is off by much */
  }
}

void tm_numerics_compose(const tm_lowering *lowering, uint32_t y_format, tm_answer *answer) {
  answer->level = TM_LEVEL_EMULATED;
  if (lowering->kind == TM_LOWERING_QUANTIZED) {
    answer->numerics = TM_NUMERICS_N3;
    answer->numerics_bound = TM_QUANTIZED_ERROR;
  }
  if (lowering->kind == TM_LOWERING_SPLIT && lowering->split.join == TM_JOIN_ADD) add_parts(&lowering->split, answer);
  if (lowering->loses_bits) promise_nothing(answer);
  if (lowering->pads_sum) reorder_sum(answer, y_format);
  if (lowering->rounds_output) round_again(answer);
}
