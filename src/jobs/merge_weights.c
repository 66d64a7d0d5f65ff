/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_weights.h"

#include <math.h>

#define UNITS 0x1p28
/* More whole units than this one factor does not have: sums of a few of them stay exact. */
#define MOST_UNITS 0x1p48

static uint32_t largest(const double *weights, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (weights[i] > weights[best]) best = i;
  return best;
}

bool tm_merge_weights_normalize(double *weights, uint32_t count, bool on_grid) {
  double sum = 0, rounded = 0;
  for (uint32_t i = 0; i < count; i++) sum += weights[i];
  if (sum == 0 || !isfinite(sum)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!(fabs(weights[i] / sum * UNITS) < MOST_UNITS)) return false;
  for (uint32_t i = 0; i < count; i++) {
    weights[i] = on_grid ? nearbyint(weights[i] / sum * UNITS) / UNITS : weights[i] / sum;
    rounded += weights[i];
  }
  if (on_grid) weights[largest(weights, count)] += 1 - rounded;
  return true;
}

/* sin((1 - t) w) / sin w and sin(t w) / sin w (Shoemake 1985), on the vectors as they are, not on unit vectors. */
void tm_merge_weights_slerp(double dot, double square_a, double square_b, double t, bool on_grid, double out_weights[2],
                            double *out_angle) {
  const double cosine = dot / (sqrt(square_a) * sqrt(square_b));
  const bool has_arc = fabs(cosine) <= TM_MERGE_SLERP_PARALLEL;
  const double angle = has_arc ? acos(cosine) : (double)NAN;
  const double share = on_grid ? nearbyint(t * UNITS) / UNITS : t;
  out_weights[0] = has_arc ? sin((1 - t) * angle) / sin(angle) : 1 - share;
  out_weights[1] = has_arc ? sin(t * angle) / sin(angle) : share;
  *out_angle = angle;
}
