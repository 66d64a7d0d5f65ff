/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stats_figures.h"

#include <math.h>
#include <string.h>

#include "tensormorph/canonical_sum.h"

/* It has lost too much when the relative error of a mean square, times how much larger it is than the variance, exceeds this. */
#define VARIANCE_TOLERANCE 2e-7
#define WIDE_SUM_ERROR 1e-13    /* f64 lanes */
#define SHORT_SUM_ERROR 1.2e-8  /* f32 chains: canonical_sum.h */

void tm_stats_words_init(uint64_t *words) {
  const double extremes[3] = { INFINITY, -INFINITY, 0 };
  memset(words, 0, TM_STATS_WORDS * sizeof *words);
  memcpy(&words[TM_STATS_MIN], extremes, sizeof extremes);
}

double tm_stats_word_number(const uint64_t *words, uint32_t word) {
  double number;
  memcpy(&number, &words[word], sizeof number);
  return number;
}

static bool is_one_value(const uint64_t *words) {
  return tm_stats_word_number(words, TM_STATS_MIN) == tm_stats_word_number(words, TM_STATS_MAX);
}

tm_moments tm_stats_moments(const uint64_t *words) {
  const uint64_t others = words[TM_STATS_NAN] + words[TM_STATS_POS_INF] + words[TM_STATS_NEG_INF];
  tm_moments moments = { .count = (double)(words[TM_STATS_COUNT] - others) };
  if (moments.count == 0) return moments;
  moments.mean = tm_sum_read(words + TM_STATS_SUM) / moments.count;
  moments.variance = tm_sum_read(words + TM_STATS_SUM_SQUARES) / moments.count - moments.mean * moments.mean;
  if (is_one_value(words)) moments.variance = 0;
  return moments;
}

static bool sums_in_short_chains(const tm_format_info *info) {
  return info->kind == TM_KIND_BLOCK || (info->kind == TM_KIND_FLOAT && info->block_bytes < 4);
}

bool tm_stats_must_centre(const tm_format_info *info, const uint64_t *words, const tm_moments *moments) {
  if (moments->count == 0 || !isfinite(moments->mean) || !isfinite(moments->variance) || is_one_value(words)) return false;
  const double error = sums_in_short_chains(info) ? SHORT_SUM_ERROR : WIDE_SUM_ERROR;
  return moments->mean * moments->mean * error > VARIANCE_TOLERANCE * moments->variance;
}
