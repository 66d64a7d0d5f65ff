/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing out a stream on a virtual clock: devices of unequal speed, noise, liars, set-ups, and nobody to help. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "solver/pull.h"

#define MOST_PIECES 3000u

/* A lane as it is; it is estimated at `claim` times what it takes. */
typedef struct true_lane {
  double   ns_per_byte;
  double   claim;
  double   noise;               /* relative, to either side */
  uint64_t setup_ns;
} true_lane;

typedef struct simulation {
  tm_pull_state state;
  const true_lane *lanes;
  uint64_t free_ns[TM_PULL_MOST_LANES];
  uint64_t pieces[TM_PULL_MOST_LANES];
  int      has_setup[TM_PULL_MOST_LANES];
  uint64_t bytes[MOST_PIECES];
  uint32_t piece_count;
  uint32_t next;
  uint64_t random;
} simulation;

static double uniform(simulation *s) {
  s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(s->random >> 11) / 9007199254740992.0;
}

static void fill(simulation *s, const true_lane *lanes, uint32_t lane_count, uint32_t piece_count, uint64_t seed) {
  memset(s, 0, sizeof *s);
  s->lanes = lanes;
  s->state.lane_count = lane_count;
  s->piece_count = piece_count;
  s->random = seed;
  for (uint32_t i = 0; i < piece_count; i++) s->bytes[i] = (uint64_t)(1e5 * exp(2 * uniform(s)));
  for (uint32_t i = 0; i < piece_count; i++) s->state.bytes_left += s->bytes[i];
}

static tm_pull_offer offer_of(const simulation *s, uint32_t lane) {
  const true_lane *it = &s->lanes[lane];
  const int is_measured = s->state.lanes[lane].bytes_done != 0;
  const double ns = (double)s->bytes[s->next] * it->ns_per_byte * (is_measured ? 1 : it->claim);
  return (tm_pull_offer){ (uint64_t)ns, s->has_setup[lane] ? 0 : it->setup_ns, is_measured };
}

/* Lane 0 is the caller's: it takes whatever is next.  Another one that finds nothing worth it is gone. */
static int takes(simulation *s, uint32_t lane) {
  if (lane == 0) return 1;
  const tm_pull_offer offer = offer_of(s, lane);
  return tm_pull_is_worth(&s->state, lane, &offer);
}

static void run(simulation *s, uint32_t lane) {
  const true_lane *it = &s->lanes[lane];
  const uint64_t bytes = s->bytes[s->next++];
  const double factor = 1 + it->noise * (2 * uniform(s) - 1);
  const uint64_t taken = (uint64_t)((double)bytes * it->ns_per_byte * factor);
  s->free_ns[lane] += taken + (s->has_setup[lane] ? 0 : it->setup_ns);
  s->has_setup[lane] = 1;
  s->pieces[lane]++;
  s->state.bytes_left -= bytes;
  s->state.lanes[lane].bytes_done += bytes;
  s->state.lanes[lane].busy_ns += taken;
}

static uint32_t first_free(const simulation *s) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < s->state.lane_count; i++)
    if (!s->state.lanes[i].is_gone && s->free_ns[i] < s->free_ns[best]) best = i;
  return best;
}

/* Helpers start when the caller's lane has shown its speed. */
static uint64_t simulate(simulation *s) {
  run(s, 0);
  for (uint32_t i = 1; i < s->state.lane_count; i++) s->free_ns[i] = s->free_ns[0];
  while (s->next < s->piece_count) {
    const uint32_t lane = first_free(s);
    if (takes(s, lane)) run(s, lane);
    else s->state.lanes[lane].is_gone = true;
  }
  uint64_t end = 0;
  for (uint32_t i = 0; i < s->state.lane_count; i++)
    if (s->free_ns[i] > end && s->pieces[i] != 0) end = s->free_ns[i];
  return end;
}

/* Least time with all lanes together, by their true speeds. */
static double true_bound(const simulation *s) {
  double bytes = 0, rate = 0;
  for (uint32_t i = 0; i < s->piece_count; i++) bytes += (double)s->bytes[i];
  for (uint32_t i = 0; i < s->state.lane_count; i++) rate += 1 / s->lanes[i].ns_per_byte;
  return bytes / rate;
}

static double time_of_best_single(const simulation *s) {
  double bytes = 0, best = INFINITY;
  for (uint32_t i = 0; i < s->piece_count; i++) bytes += (double)s->bytes[i];
  for (uint32_t i = 0; i < s->state.lane_count; i++) best = fmin(best, bytes * s->lanes[i].ns_per_byte + (double)s->lanes[i].setup_ns);
  return best;
}

static double mean_efficiency(const true_lane *lanes, uint32_t lane_count, uint32_t piece_count) {
  static simulation s;
  double sum = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    fill(&s, lanes, lane_count, piece_count, seed);
    sum += true_bound(&s) / (double)simulate(&s);
  }
  return sum / 20;
}

static void unequal_lanes_share_well(void **state) {
  static const true_lane exact[] = { { 0.2, 1, 0, 0 }, { 0.1, 1, 0, 0 }, { 0.5, 1, 0, 0 } };
  static const true_lane noisy[] = { { 0.2, 1, 0.3, 0 }, { 0.1, 1, 0.3, 0 }, { 0.5, 1.0 / 3, 0.3, 0 } };
  (void)state;
  static const uint32_t counts[] = { 300, 3000 };
  for (int i = 0; i < 2; i++) {
    const double plain = mean_efficiency(exact, 3, counts[i]), rough = mean_efficiency(noisy, 3, counts[i]);
    printf("%4u pieces, three lanes: bound / achieved %.3f; with 30 %% noise and one that claims to be 3x as fast: %.3f\n", counts[i], plain, rough);
    assert_true(plain >= 0.9);
    assert_true(rough >= 0.9);
  }
}

/* Against the best single device, which is the caller's here, or the helper. */
static void nobody_is_worse_off(void **state) {
  static const true_lane optimist[] = { { 0.1, 1, 0.1, 0 }, { 1.0, 0.1, 0.1, 0 } };
  static const true_lane slow_start[] = { { 0.1, 1, 0.1, 0 }, { 0.05, 1, 0.1, UINT64_C(1000000000) } };
  static const true_lane both[] = { { 0.1, 1, 0.1, 0 }, { 1.0, 0.1, 0.1, 0 }, { 0.05, 1, 0.1, UINT64_C(1000000000) } };
  static const struct { const char *what; const true_lane *lanes; uint32_t count; } cases[] = {
    { "a 10x optimist", optimist, 2 }, { "1 s of set-up", slow_start, 2 }, { "both", both, 3 } };
  static const uint32_t counts[] = { 100, 300, 1000 };
  static simulation s;
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
    for (size_t n = 0; n < 3; n++) {
      double worst = 0;
      for (uint64_t seed = 1; seed <= 20; seed++) {
        fill(&s, cases[c].lanes, cases[c].count, counts[n], seed);
        worst = fmax(worst, (double)simulate(&s) / time_of_best_single(&s));
      }
      printf("%4u pieces, %s: at most %.3f of the best single device's time\n", counts[n], cases[c].what, worst);
      assert_true(worst <= 1.10);
    }
}

static void each_takes_what_suits_it(void **state) {
  tm_pull_state s = { .lane_count = 2, .bytes_left = 1000000 };
  s.lanes[0] = (tm_pull_lane){ 1000, 1000, false };
  const tm_pull_offer good = { 100, 0, true }, bad = { 900, 0, true }, never = { TM_PULL_NEVER, 0, true };
  (void)state;
  assert_true(tm_pull_advantage(&s, 1, 1000, &good) > tm_pull_advantage(&s, 1, 1000, &bad));
  assert_true(tm_pull_advantage(&s, 1, 1000, &never) < 0);
  assert_false(tm_pull_is_worth(&s, 1, &never));
}

static void edges(void **state) {
  tm_pull_state s = { .lane_count = 2, .bytes_left = 1000 };
  const tm_pull_offer offer = { 100, 0, true }, unknown = { 101, 0, false }, dear = { 100, 901, true };
  (void)state;
  assert_false(tm_pull_is_worth(&s, 1, &offer));        /* nobody has shown anything yet */
  assert_int_equal(tm_pull_others_ns(&s, 1, 1000), TM_PULL_NEVER);
  assert_int_equal(tm_pull_bound_ns(&s), 0);
  s.lanes[0] = (tm_pull_lane){ 1000, 1000, false };
  assert_int_equal(tm_pull_others_ns(&s, 1, 1000), 1000);
  assert_true(tm_pull_is_worth(&s, 1, &offer));
  assert_false(tm_pull_is_worth(&s, 1, &unknown));      /* ten times 101 ns are more than 1000 */
  assert_false(tm_pull_is_worth(&s, 1, &dear));
  s.lanes[0].is_gone = true;
  assert_false(tm_pull_is_worth(&s, 1, &offer));
  s.lanes[0] = (tm_pull_lane){ UINT64_MAX, 0, false };  /* no time at all */
  s.bytes_left = UINT64_MAX;
  (void)tm_pull_is_worth(&s, 1, &offer);
  s.lanes[0] = (tm_pull_lane){ 1, UINT64_MAX, false };
  assert_true(tm_pull_is_worth(&s, 1, &offer));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(unequal_lanes_share_well), cmocka_unit_test(nobody_is_worse_off), cmocka_unit_test(each_takes_what_suits_it),
    cmocka_unit_test(edges),
  };
  return cmocka_run_group_tests_name("pull", tests, NULL, NULL);
}
