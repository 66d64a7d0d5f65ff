/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/correction_node.h"

#include "base/checked.h"
#include "base/log2_fixed.h"

/* In 2^-32 of a doubling: one nat is 1.4427 doublings. */
#define NAT INT64_C(6196328019)
#define CLIP NAT                /* one measurement is believed to be off a settled mean by no more than this */
/* While little was seen, no run is believed to take much longer than was expected: it may have been held up.  But nothing makes
   one faster than it is, so that one which is tells more than those before. */
#define FIRST_CLIP (NAT * 3 / 2)
#define SETTLED (3 * TM_WEIGHT_ONE)
#define LARGE_RESIDUAL (NAT * 2 / 5)    /* two standard deviations of the noise */
#define SMALL_RESIDUAL (NAT / 40)
#define LEAN_LENGTH 8           /* so many in a row are no chance: the device changes slowly, and less of what is old counts */
#define LEAN_WEIGHT (8 * TM_WEIGHT_ONE)
#define DRIFT_LENGTH 5          /* so many large residuals of one sign in a row: the device changed, start over */

tm_belief tm_belief_refine(tm_belief above, const tm_correction_state *state, uint32_t spread) {
  const int64_t information = (int64_t)state->weight * spread / TM_WEIGHT_ONE, all = information + TM_NOISE;
  const int64_t own = (int64_t)((uint64_t)spread << TM_VARIANCE_BITS);
  const int64_t inherited = tm_fraction_of(tm_fraction_of((int64_t)above.variance, TM_NOISE, all), TM_NOISE, all);
  return (tm_belief){ .mean = above.mean + tm_fraction_of(state->mean - above.mean, information, all),
                      .variance = (uint64_t)(tm_fraction_of(own, TM_NOISE, all) + inherited) };
}

#define COMMON_SPREAD (TM_SPREAD_DEVICE / 2)

/* Of one class: how much of its mean is not noise, in TM_WEIGHT_ONE. */
static int64_t sureness(const tm_correction_state *state) {
  const int64_t information = (int64_t)state->weight * COMMON_SPREAD / TM_WEIGHT_ONE;
  return information * TM_WEIGHT_ONE / (information + TM_NOISE);
}

/* The square of a difference of logarithms, in 2^-32. */
static uint64_t square_of(int64_t residual) {
  const int64_t coarse = residual / (INT64_C(1) << 16);
  return (uint64_t)(coarse * coarse);
}

static int64_t clip(int64_t value, int64_t limit) { return value > limit ? limit : value < -limit ? -limit : value; }

/* Of the variances, in 2^-32, of what the classes have in common and between them; `known` classes have that mean. */
static tm_class_prior class_prior(int64_t mean, int64_t common, int64_t between, int64_t known) {
  const int64_t shared = common / TM_WEIGHT_ONE * known, all = (shared + between) >> TM_VARIANCE_BITS;
  const int64_t furthest = 2 * ((int64_t)tm_square_root((uint64_t)between) << 16);
  const int64_t own = tm_fraction_of(mean, between >> TM_VARIANCE_BITS, all);
  const uint64_t spread = tm_min_u64((uint64_t)between >> TM_VARIANCE_BITS, UINT32_MAX);
  return (tm_class_prior){ { mean - clip(own, furthest), (uint64_t)tm_fraction_of(common, between >> TM_VARIANCE_BITS, all) },
                           (uint32_t)tm_max_u64(spread, TM_SPREAD_CLASS) };
}

tm_class_prior tm_class_prior_of(const tm_correction_state *const *others, uint32_t count) {
  const int64_t common = (int64_t)COMMON_SPREAD << TM_VARIANCE_BITS;
  int64_t known = 0, sum = 0, between = common;
  for (uint32_t i = 0; i < count; i++) {
    known += sureness(others[i]);
    sum += sureness(others[i]) * others[i]->mean;
  }
  const int64_t mean = known == 0 ? 0 : sum / known;
  for (uint32_t i = 0; i < count; i++) between += (int64_t)square_of(others[i]->mean - mean) / TM_WEIGHT_ONE * sureness(others[i]);
  between = tm_fraction_of(between, TM_WEIGHT_ONE, known > TM_WEIGHT_ONE ? known : TM_WEIGHT_ONE);
  return class_prior(mean, common, between, known);
}

/* How many residuals in a row are at least that large, and of one sign. */
static int32_t count_row(int32_t before, int64_t residual, int64_t least) {
  const int32_t sign = residual > least ? 1 : residual < -least ? -1 : 0;
  if (sign == 0 || (before > 0) != (sign > 0)) return sign;
  return before > LEAN_LENGTH || before < -LEAN_LENGTH ? before : before + sign;
}

/* True when there were so many large ones that the device must have changed. */
static bool has_drifted(tm_correction_state *state, int64_t residual) {
  state->drift = count_row(state->drift, residual, LARGE_RESIDUAL);
  state->lean = count_row(state->lean, residual, SMALL_RESIDUAL);
  if (state->lean >= LEAN_LENGTH || state->lean <= -LEAN_LENGTH) state->weight = (uint32_t)tm_min_u64(state->weight, LEAN_WEIGHT);
  return state->drift >= DRIFT_LENGTH || state->drift <= -DRIFT_LENGTH;
}

static void add_sample(tm_correction_state *state, int64_t residual, uint64_t square) {
  state->samples++;
  state->weight = (uint32_t)tm_min_u64(state->weight + TM_WEIGHT_ONE, TM_LARGEST_WEIGHT);
  state->mean += tm_fraction_of(residual, TM_WEIGHT_ONE, state->weight);
  state->variance -= state->variance / state->weight * TM_WEIGHT_ONE;
  state->variance += square / state->weight * TM_WEIGHT_ONE;
}

static void start_over(tm_correction_node *node, int64_t x) {
  node->live.weight = 0;
  node->live.drift = node->live.lean = 0;
  node->live.mean = x;
  node->fresh = (tm_correction_state){ .samples = node->fresh.samples };
  node->is_reset = true;
}

bool tm_correction_state_is_surprised(const tm_correction_state *state, int64_t x) {
  return state->weight >= SETTLED && (x - state->mean > LARGE_RESIDUAL || x - state->mean < -LARGE_RESIDUAL);
}

void tm_correction_node_learn(tm_correction_node *node, int64_t x, int64_t above, bool may_drift) {
  tm_correction_state *live = &node->live;
  if (live->weight == 0) live->mean = above;
  int64_t residual = x - live->mean;
  const uint64_t square = square_of(clip(residual, FIRST_CLIP));
  const bool is_settled = live->weight >= SETTLED;
  if (is_settled ? may_drift && has_drifted(live, residual) : live->weight != 0 && residual < -LARGE_RESIDUAL) {
    start_over(node, x);
    residual = 0;
  }
  if (is_settled) residual = clip(residual, CLIP);
  else if (residual > FIRST_CLIP) residual = FIRST_CLIP;
  const int64_t accepted = live->mean + residual;
  add_sample(live, residual, square);
  if (node->fresh.weight == 0) node->fresh.mean = accepted;
  add_sample(&node->fresh, accepted - node->fresh.mean, square);
}

/* Measurements that would say as little as these do, given the doubt. */
static uint32_t doubted(uint32_t weight, uint32_t doubt) {
  const uint64_t noise = (uint64_t)TM_NOISE * TM_WEIGHT_ONE;
  return (uint32_t)(weight * noise / (noise + (uint64_t)weight * doubt));
}

void tm_correction_node_merge(tm_correction_node *node, const tm_correction_state *other, bool is_reset, uint32_t doubt) {
  tm_correction_state *live = &node->live;
  const uint32_t weight = doubted((uint32_t)tm_min_u64(other->weight, TM_LARGEST_WEIGHT), doubt);
  if (is_reset) live->weight = 0;
  live->samples += other->samples;
  if (weight == 0) return;
  if (live->weight == 0) live->mean = other->mean;
  if (live->weight == 0) live->variance = other->variance;
  live->weight = (uint32_t)tm_min_u64((uint64_t)live->weight + weight, TM_LARGEST_WEIGHT);
  live->mean += tm_fraction_of(other->mean - live->mean, weight, live->weight);
  live->variance -= live->variance / live->weight * weight;
  live->variance += other->variance / live->weight * weight;
}
