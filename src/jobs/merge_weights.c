/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_weights.h"

#include <math.h>

#define UNITS 0x1p28
/* More whole units than this one factor does not have: sums of a few of them stay exact. */
#define MOST_UNITS 0x1p48

/* The nearest multiple of 2^-28; a number too large to have one stays what it is. */
static double round_weight(double weight) {
  const double units = weight * UNITS;
  return fabs(units) < MOST_UNITS ? nearbyint(units) / UNITS : weight;
}

static uint32_t largest(const double *weights, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (weights[i] > weights[best]) best = i;
  return best;
}

bool tm_merge_weights_normalize(double *weights, uint32_t count) {
  double sum = 0, rounded = 0;
  for (uint32_t i = 0; i < count; i++) sum += weights[i];
  if (sum == 0 || !isfinite(sum)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!(fabs(weights[i] / sum * UNITS) < MOST_UNITS)) return false;
  for (uint32_t i = 0; i < count; i++) {
    weights[i] = nearbyint(weights[i] / sum * UNITS) / UNITS;
    rounded += weights[i];
  }
  weights[largest(weights, count)] += 1 - rounded;
  return true;
}

/* sin((1 - t) w) / sin w and sin(t w) / sin w (Shoemake 1985), on the vectors as they are, not on unit vectors. */
void tm_merge_weights_slerp(double dot, double square_a, double square_b, double t, double out_weights[2], double *out_angle) {
  const double cosine = dot / (sqrt(square_a) * sqrt(square_b));
  double weights[2] = { 1 - t, t };
  *out_angle = NAN;
  if (fabs(cosine) <= TM_MERGE_SLERP_PARALLEL) {
    const double angle = acos(cosine);
    weights[0] = sin((1 - t) * angle) / sin(angle);
    weights[1] = sin(t * angle) / sin(angle);
    *out_angle = angle;
  }
  out_weights[0] = round_weight(weights[0]);
  out_weights[1] = round_weight(weights[1]);
  if (isnan(*out_angle)) out_weights[0] = 1 - out_weights[1];
}
