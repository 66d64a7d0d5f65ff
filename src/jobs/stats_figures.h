/* SPDX-License-Identifier: Apache-2.0 */
/* stats_figures.h - from the words that TM_OP_STATS counted to the numbers that people read. */
#ifndef TM_JOBS_STATS_FIGURES_H
#define TM_JOBS_STATS_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/format.h"
#include "tensormorph/types.h"

/* Moments of the finite values. */
typedef struct tm_moments {
  double count;
  double mean;
  double variance;              /* the population's; NaN: it does not fit into f64 */
} tm_moments;

/* Words of no elements at all. */
void       tm_stats_words_init(uint64_t *words);
/* One of the words that hold the bits of an f64. */
double     tm_stats_word_number(const uint64_t *words, uint32_t word);
tm_moments tm_stats_moments(const uint64_t *words);

/* Where the mean is large beside the deviation, the difference of the mean square and the squared mean has lost what it was
   to tell.  Then the tensor has to be read again, and its distance from the mean summed. */
bool       tm_stats_must_centre(const tm_format_info *info, const uint64_t *words, const tm_moments *moments);

#endif
