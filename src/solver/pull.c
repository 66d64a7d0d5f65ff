/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/pull.h"

#include <stddef.h>

/* Bytes a nanosecond; 0: not known. */
static double rate_of(const tm_pull_lane *lane) {
  if (lane->bytes_done == 0) return 0;
  return (double)lane->bytes_done / (double)(lane->busy_ns == 0 ? 1 : lane->busy_ns);
}

static double rate_of_others(const tm_pull_state *state, uint32_t lane) {
  double rate = 0;
  for (uint32_t i = 0; i < state->lane_count; i++)
    if (i != lane && !state->lanes[i].is_gone) rate += rate_of(&state->lanes[i]);
  return rate;
}

static uint64_t to_ns(double ns) { return ns < 1e18 ? (uint64_t)ns : UINT64_C(1000000000000000000); }

uint64_t tm_pull_others_ns(const tm_pull_state *state, uint32_t lane, uint64_t bytes) {
  const double rate = rate_of_others(state, lane);
  return rate > 0 ? to_ns((double)bytes / rate) : TM_PULL_NEVER;
}

static double believed_ns(const tm_pull_offer *offer) {
  return (double)offer->own_ns * (offer->is_measured ? 1 : TM_PULL_DISTRUST) + (double)offer->setup_ns;
}

bool tm_pull_is_worth(const tm_pull_state *state, uint32_t lane, const tm_pull_offer *offer) {
  if (offer->own_ns == TM_PULL_NEVER) return false;
  const uint64_t others_ns = tm_pull_others_ns(state, lane, state->bytes_left);
  return others_ns != TM_PULL_NEVER && believed_ns(offer) <= (double)others_ns;
}

double tm_pull_advantage(const tm_pull_state *state, uint32_t lane, uint64_t bytes, const tm_pull_offer *offer) {
  if (offer->own_ns == TM_PULL_NEVER) return -1;
  const double rate = rate_of_others(state, lane);
  const double others_ns = rate > 0 ? (double)bytes / rate : 0;
  return others_ns / (double)(offer->own_ns == 0 ? 1 : offer->own_ns);
}

uint64_t tm_pull_bound_ns(const tm_pull_state *state) {
  double bytes = 0, rate = 0;
  for (uint32_t i = 0; i < state->lane_count; i++) {
    bytes += (double)state->lanes[i].bytes_done;
    rate += rate_of(&state->lanes[i]);
  }
  return rate > 0 ? to_ns(bytes / rate) : 0;
}
