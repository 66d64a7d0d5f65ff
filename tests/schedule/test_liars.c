/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that declare something else than they do, on a virtual clock: what a sequence of operations took, over what it takes
 * one who knows the truth.  The ratios are printed.  TM_NIGHTLY=1: with more speeds of the liar.
 */
#include <stdlib.h>

#include "api/context.h"
#include "fakes/fake_case.h"
#include "fakes/idle_devices.h"

#define MOST_ELEMENTS 16384u
#define SIZES 4
#define OPERATIONS 5000
#define FIRST_CALL_NS 5e8       /* beyond what later ones take */

typedef enum manner { STEADY, BY_SIZE, LARGE_ONLY, RANDOM, DRIFTING, THROTTLED, SLOW_FIRST, NOISY, COPIES_ONLY } manner;

/* What a device really takes, and what it makes of that. */
typedef struct truth {
  double launch_ns;
  double element_ns;
  double lie;                   /* declared = truth * lie */
  manner how;
} truth;

static uint64_t scramble(uint64_t value) {
  value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
  return (value ^ value >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 11;
}

/* Between 1/most and most. */
static double some_factor(uint64_t value, int most) {
  const int step = (int)(scramble(value) % (2 * (uint64_t)most - 1));
  return step < most ? 1.0 / (1 + step) : 1 + step - most + 1;
}

static double true_ns(const truth *t, uint64_t elements) { return t->launch_ns + t->element_ns * (double)elements; }

static uint64_t virtual_ns(const fake_control *control, uint32_t op, uint64_t elements, uint64_t launch) {
  const truth *t = control->user;
  double ns = true_ns(t, elements);
  if (t->how == COPIES_ONLY && op == TM_OP_COPY) ns /= 8;
  if (t->how == DRIFTING) ns *= 1 + 2.0 * (double)launch / OPERATIONS;
  if (t->how == THROTTLED && launch > OPERATIONS / 2) ns *= 3;
  if (t->how == SLOW_FIRST && launch == 0) ns += FIRST_CALL_NS;
  if (t->how == NOISY) ns *= 0.7 + 0.6 * (double)(scramble(launch) % 1000) / 1000;
  return (uint64_t)ns;
}

static uint64_t declared_ns(const fake_control *control, uint32_t op, uint64_t elements) {
  const truth *t = control->user;
  double lie = t->lie;
  if (t->how == LARGE_ONLY && elements <= 4096) lie = 1;
  if (t->how == BY_SIZE) lie *= elements > 4096 ? 10 : 0.1;
  if (t->how == RANDOM) lie = some_factor(elements * 31 + op, 100);
  const double ns = true_ns(t, elements) * lie;
  return ns > 1e15 ? UINT64_C(1000000000000000) : (uint64_t)ns;
}

/* ---- the world ---- */

typedef struct world {
  fake_case        one;
  _Atomic uint64_t clock_ns;
  uint64_t         reads;
  bool             goes_back;
  tm_tensor       *x[SIZES];
  tm_tensor       *y[SIZES];
  uint64_t         elements[SIZES];
} world;

static uint64_t virtual_now(void *context) {
  world *w = context;
  const uint64_t now = atomic_load(&w->clock_ns);
  return w->goes_back && ++w->reads % 97 < 3 && now > 5000000 ? now - 5000000 : now;
}

static void open_world(world *w, const truth *truths, uint32_t count, const uint64_t *setups_ns) {
  memset(w, 0, sizeof *w);
  atomic_store(&w->clock_ns, 1000);
  for (uint32_t i = 0; i < count; i++) {
    fake_control *control = &w->one.controls[i];
    control->numerics_flags = TM_NUMERICS_RUN_TO_RUN;
    memset(&control->uuid, (int)i + 1, sizeof control->uuid);
    control->clock_ns = &w->clock_ns;
    control->virtual_ns = virtual_ns;
    control->declared_ns = declared_ns;
    control->user = &truths[i];
    control->setup_ns = control->virtual_setup_ns = setups_ns == NULL ? 0 : setups_ns[i];
  }
  fake_case_open(&w->one, count == 2 ? "ab" : "abc", "reference");
  allow_idle_devices(w->one.context);
  w->one.context->inventory->clock = (tm_clock){ virtual_now, w };
  for (uint32_t i = 0; i < SIZES; i++) {
    w->elements[i] = MOST_ELEMENTS >> (2 * i);
    assert_int_equal(tm_tensor_create(w->one.context, TM_FORMAT_F32, 1, &w->elements[i], &w->x[i], NULL), TM_OK);
    assert_int_equal(tm_tensor_create(w->one.context, TM_FORMAT_F32, 1, &w->elements[i], &w->y[i], NULL), TM_OK);
  }
}

static void close_world(world *w) {
  for (uint32_t i = 0; i < SIZES; i++) {
    tm_tensor_destroy(w->x[i]);
    tm_tensor_destroy(w->y[i]);
  }
  fake_case_close(&w->one);
}

static uint32_t run(world *w, uint32_t size, uint32_t op, uint32_t repeats) {
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report, .repeats = repeats };
  tm_error error = { .struct_size = sizeof error };
  if (tm_run(w->one.context, op, NULL, 0, &w->x[size], 1, &w->y[size], 1, &options, &error) != TM_OK) fail_msg("%s", error.text);
  return report.device;
}

/* ---- a long sequence ---- */

static double sequence_ratio(const truth truths[2], bool goes_back) {
  world w;
  open_world(&w, truths, 2, NULL);
  w.goes_back = goes_back;
  double oracle_ns = 0, honest_ns = 0;
  const uint64_t begin = atomic_load(&w.clock_ns);
  uint64_t launched[2] = { 0, 0 };
  for (uint64_t i = 0; i < OPERATIONS; i++) {
    const uint32_t size = (uint32_t)(scramble(i) % SIZES), op = scramble(i + 99) % 2 == 0 ? TM_OP_NEG : TM_OP_COPY;
    (void)run(&w, size, op, 0);
    double best = 1e30;
    for (uint32_t d = 0; d < 2; d++) {
      launched[d] = atomic_load(&w.one.controls[d].launches);
      const truth *t = &truths[d];
      double ns = true_ns(t, w.elements[size]);
      if (t->how == DRIFTING) ns *= 1 + 2.0 * (double)launched[d] / OPERATIONS;
      if (t->how == THROTTLED && launched[d] > OPERATIONS / 2) ns *= 3;
      if (ns < best) best = ns;
    }
    oracle_ns += best;
    honest_ns += true_ns(&truths[0], w.elements[size]);
  }
  /* A slow first call is slow for whoever knows of it, too: it is made, or the device is never used. */
  if (truths[1].how == SLOW_FIRST) oracle_ns = oracle_ns + FIRST_CALL_NS < honest_ns ? oracle_ns + FIRST_CALL_NS : honest_ns;
  const double total_ns = (double)(atomic_load(&w.clock_ns) - begin);
  close_world(&w);
  return total_ns / oracle_ns;
}

/* Of the liar, beside the honest one: its time. */
static const double speeds[] = { 0.1, 0.3, 0.5, 2, 10, 0.8, 1.25, 3 };
#define SPEEDS (getenv("TM_NIGHTLY") != NULL ? sizeof speeds / sizeof speeds[0] : 5)

static double worst_of(double lie, manner how, bool goes_back, const char *name) {
  double worst = 0;
  printf("%-28s total / oracle", name);
  for (size_t i = 0; i < SPEEDS; i++) {
    const truth truths[2] = { { 20000, 1000, 1, how == THROTTLED || how == NOISY ? how : STEADY }, { 20000 * speeds[i], 1000 * speeds[i], lie, how } };
    const double ratio = sequence_ratio(truths, goes_back);
    printf(" %.3f", ratio);
    if (ratio > worst) worst = ratio;
  }
  printf("\n");
  return worst;
}

static void assert_at_most(double found, double most) {
  if (!(found <= most)) fail_msg("%g, at most %g", found, most);
}

static void optimists(void **state) {
  (void)state;
  assert_at_most(worst_of(1, STEADY, false, "honest"), 1.10);
  assert_at_most(worst_of(0.1, STEADY, false, "10x optimist"), 1.10);
  assert_at_most(worst_of(0.01, STEADY, false, "100x optimist"), 1.10);
  assert_at_most(worst_of(0.1, NOISY, false, "10x optimist, noisy"), 1.10);
}

static void pessimists(void **state) {
  (void)state;
  assert_at_most(worst_of(10, STEADY, false, "10x pessimist"), 1.10);
  assert_at_most(worst_of(10, NOISY, false, "10x pessimist, noisy"), 1.10);
  assert_at_most(worst_of(100, STEADY, false, "100x pessimist"), 1.15);
}

static void other_lies(void **state) {
  (void)state;
  assert_at_most(worst_of(1, BY_SIZE, false, "10x by size, both ways"), 1.25);
  assert_at_most(worst_of(10, LARGE_ONLY, false, "10x pessimist of large work"), 1.25);
  assert_at_most(worst_of(0.1, LARGE_ONLY, false, "10x optimist of large work"), 1.10);
  assert_at_most(worst_of(1, RANDOM, false, "random, x0.01 to x100"), 1.05);
  assert_at_most(worst_of(1, DRIFTING, false, "drifting to 3x"), 1.05);
  assert_at_most(worst_of(1, THROTTLED, false, "throttled 3x in mid-run"), 1.05);
  assert_at_most(worst_of(0.1, SLOW_FIRST, false, "10x optimist, slow first call"), 1.05);
  assert_at_most(worst_of(1, SLOW_FIRST, false, "honest, slow first call"), 1.05);
}

/* It declares five times what the honest one does, and is right but for copies, which it does in an eighth. */
static void one_class_tells_little_of_another(void **state) {
  (void)state;
  const truth truths[2] = { { 20000, 1000, 1, STEADY }, { 100000, 5000, 1, COPIES_ONLY } };
  world w;
  open_world(&w, truths, 2, NULL);
  uint32_t device = 0;
  for (int i = 0; i < 1000; i++) device = run(&w, 0, TM_OP_COPY, 0);
  assert_int_equal(device, 1);
  assert_int_equal(run(&w, 0, TM_OP_NEG, 0), 0);
  assert_int_equal(run(&w, 1, TM_OP_NEG, 0), 0);
  close_world(&w);
}

static void numbers_without_sense(void **state) {
  (void)state;
  assert_at_most(worst_of(0, STEADY, false, "declares 0"), 1.10);
  assert_at_most(worst_of(1e15, STEADY, false, "declares 10^15"), 1.10);
  assert_at_most(worst_of(0.1, STEADY, true, "10x optimist, clock goes back"), 1.10);
}

/* ---- with an empty profile, one run of so many tensors ---- */

static double run_ratio(const truth truths[2], const uint64_t setups_ns[2], int count, uint32_t repeats) {
  world w;
  open_world(&w, truths, 2, setups_ns);
  double single_ns[2] = { (double)setups_ns[0], (double)setups_ns[1] };
  const uint64_t begin = atomic_load(&w.clock_ns);
  for (int i = 0; i < count; i++) {
    (void)run(&w, 0, TM_OP_NEG, repeats);
    for (int d = 0; d < 2; d++) single_ns[d] += true_ns(&truths[d], w.elements[0]);
  }
  const double total_ns = (double)(atomic_load(&w.clock_ns) - begin);
  close_world(&w);
  return total_ns / (single_ns[0] < single_ns[1] ? single_ns[0] : single_ns[1]);
}

static const int run_counts[] = { 100, 300, 1000 };

static void one_run_with_an_optimist(void **state) {
  (void)state;
  for (size_t c = 0; c < 3; c++) {
    printf("%4d tensors, 10x optimist: total / best single device", run_counts[c]);
    for (size_t i = 0; i < SPEEDS; i++) {
      const truth truths[2] = { { 20000, 1000, 1, STEADY }, { 20000, 1000 * speeds[i], 0.1, STEADY } };
      const uint64_t setups[2] = { 0, 0 };
      const double ratio = run_ratio(truths, setups, run_counts[c], 0);
      printf(" %.3f", ratio);
      assert_at_most(ratio, 1.10);
    }
    printf("\n");
  }
}

/* It is no faster than the cores, because it is the cores; but it says so. */
static void one_run_with_a_device_that_shares_the_cores(void **state) {
  (void)state;
  for (size_t c = 0; c < 3; c++) {
    const truth truths[2] = { { 20000, 1000, 1, STEADY }, { 60000, 1100, 0.5, STEADY } };
    const uint64_t setups[2] = { 0, 0 };
    const double ratio = run_ratio(truths, setups, run_counts[c], 0);
    printf("%4d tensors, a device on the same cores that claims twice the speed: %.3f\n", run_counts[c], ratio);
    assert_at_most(ratio, 1.10);
  }
}

/* Who does not say how often pays at most twice; who does gets what that is worth. */
static void one_run_with_a_second_of_set_up(void **state) {
  (void)state;
  for (size_t c = 0; c < 3; c++) {
    for (size_t i = 0; i < SPEEDS; i++) {
      const truth truths[2] = { { 20000, 1000, 1, STEADY }, { 20000, 1000 * speeds[i], 1, STEADY } };
      const uint64_t setups[2] = { 0, 1000000000 };
      const double told = run_ratio(truths, setups, run_counts[c], (uint32_t)run_counts[c]);
      const double untold = run_ratio(truths, setups, run_counts[c], 0);
      printf("%4d tensors, 1 s of set-up, then x%.2f of the time: %.3f where repeats are declared, %.3f where not\n", run_counts[c],
             speeds[i], told, untold);
      assert_at_most(told, 1.10);
      assert_at_most(untold, 2.05);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(optimists),
    cmocka_unit_test(pessimists),
    cmocka_unit_test(other_lies),
    cmocka_unit_test(one_class_tells_little_of_another),
    cmocka_unit_test(numbers_without_sense),
    cmocka_unit_test(one_run_with_an_optimist),
    cmocka_unit_test(one_run_with_a_device_that_shares_the_cores),
    cmocka_unit_test(one_run_with_a_second_of_set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
