/* SPDX-License-Identifier: Apache-2.0 */
/* Where operations go: by price alone, once per request, anew when answers or prices change, and never by name or order. */
#include "api/context.h"
#include "fakes/fake_case.h"

static const char *ran_on(fake_case *one, const tm_run_options *options) {
  return fake_device_name(one, fake_case_run(one, options).device);
}

static void set_costs(fake_case *one, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t costs[FAKES] = { a, b, c };
  for (int i = 0; i < FAKES; i++) {
    one->controls[i].cost_ns = costs[i];
    one->controls[i].uuid.bytes[0] = (uint8_t)(i + 1);
    one->controls[i].numerics_flags = TM_NUMERICS_RUN_TO_RUN;
  }
}

static uint64_t launches(fake_case *one, int fake) { return atomic_load(&one->controls[fake].launches); }

/* ---- the cheapest, whatever it is called and wherever it stands ---- */

static void the_cheapest_is_chosen_under_any_name_and_order(void **state) {
  (void)state;
  static const char *const orders[] = { "abc", "acb", "bac", "bca", "cab", "cba" };
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
    fake_case one = { 0 };
    set_costs(&one, 300, 100, 200);             /* of the first, second and third file, whatever its name */
    fake_case_open(&one, orders[i], NULL);
    (void)fake_case_run(&one, NULL);
    assert_int_equal(launches(&one, 1), 1);
    assert_int_equal(launches(&one, 0) + launches(&one, 2), 0);
    fake_case_close(&one);
  }
}

static void a_tie_goes_by_identity_under_any_name_and_order(void **state) {
  (void)state;
  static const char *const orders[] = { "abc", "bca", "cba" };
  static const uint8_t identities[][FAKES] = { { 3, 1, 2 }, { 1, 2, 3 }, { 2, 3, 1 } };
  static const int lowest[] = { 1, 0, 2 };
  for (size_t o = 0; o < 3; o++)
    for (size_t i = 0; i < 3; i++) {
      fake_case one = { 0 };
      set_costs(&one, 100, 100, 100);
      for (int f = 0; f < FAKES; f++) one.controls[f].uuid.bytes[0] = identities[i][f];
      fake_case_open(&one, orders[o], NULL);
      (void)fake_case_run(&one, NULL);
      assert_int_equal(launches(&one, lowest[i]), 1);
      fake_case_close(&one);
    }
}

static void take_uuid(const fake_case *one, const char *device, char uuid[33]) {
  tm_device_description description = { .struct_size = sizeof description };
  assert_int_equal(tm_device_describe(one->context, fake_device_index(one, device), &description), TM_OK);
  snprintf(uuid, 33, "%s", description.uuid);
}

/* They are of one build, as those are that were made in one second. */
static void made_up_identities_are_those_of_files(void **state) {
  (void)state;
  static const char *const orders[] = { "abc", "cba", "b" };
  char uuids[3][2][33];
  for (size_t o = 0; o < 3; o++) {
    fake_case one = { 0 };
    fake_case_open(&one, orders[o], NULL);
    take_uuid(&one, o == 2 ? "fake_b:0" : "fake_a:0", uuids[o][0]);
    take_uuid(&one, "fake_b:0", uuids[o][1]);
    fake_case_close(&one);
  }
  assert_string_equal(uuids[0][0], uuids[1][0]);
  assert_string_equal(uuids[0][1], uuids[1][1]);
  assert_string_equal(uuids[0][1], uuids[2][1]);
  assert_string_not_equal(uuids[0][0], uuids[0][1]);
}

/* Which of them ran it, with `letters` as the order of loading. */
static char tie_of(const char *letters, uint8_t identity, uint32_t queues_of_c) {
  fake_case one = { 0 };
  set_costs(&one, 100, 100, 100);
  for (int f = 0; f < FAKES; f++) one.controls[f].uuid.bytes[0] = identity;
  one.controls[strchr(letters, 'c') - letters].queue_count = queues_of_c;
  fake_case_open(&one, letters, NULL);
  (void)fake_case_run(&one, NULL);
  char ran = '-';
  for (int f = 0; f < FAKES; f++)
    if (launches(&one, f) != 0) ran = letters[f];
  fake_case_close(&one);
  return ran;
}

static void a_tie_without_identities_does_not_go_by_order(void **state) {
  (void)state;
  static const char *const orders[] = { "abc", "acb", "bac", "bca", "cab", "cba" };
  for (uint8_t identity = 0; identity < 2; identity++)
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
      assert_int_equal(tie_of(orders[o], identity, 0), tie_of(orders[0], identity, 0));
      assert_int_equal(tie_of(orders[o], identity, 1), 'c');    /* another kind of device than the others */
    }
}

static void devices_of_one_identity_are_kept_apart_and_told(void **state) {
  (void)state;
  fake_case one = { 0 };
  char uuids[3][33];
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (int f = 0; f < 2; f++) memset(one.controls[f].uuid.bytes, 7, sizeof one.controls[f].uuid.bytes);
  memset(one.controls[2].uuid.bytes, 8, sizeof one.controls[2].uuid.bytes);
  fake_case_open(&one, "abc", NULL);
  take_uuid(&one, "fake_a:0", uuids[0]);
  take_uuid(&one, "fake_b:0", uuids[1]);
  take_uuid(&one, "fake_c:0", uuids[2]);
  assert_string_not_equal(uuids[0], uuids[1]);
  assert_string_equal(uuids[2], "08080808080808080808080808080808");
  assert_int_equal(tm_backend_describe(one.context, 1, &backend), TM_OK);
  assert_non_null(strstr(backend.note, "fake_b:0 says that it is the same device as fake_a:0 (one uuid); they are kept apart"));
  assert_int_equal(tm_backend_describe(one.context, 2, &backend), TM_OK);
  assert_null(strstr(backend.note, "one uuid"));
  fake_case_close(&one);
}

static void scaling_all_costs_changes_nothing(void **state) {
  (void)state;
  static const uint64_t scales[] = { 1, 7, 1000 };
  for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
    fake_case one = { 0 };
    set_costs(&one, 5 * scales[i], 2 * scales[i], 3 * scales[i]);
    fake_case_open(&one, "abc", "reference");   /* whose cost is not scaled */
    assert_string_equal(ran_on(&one, NULL), "fake_b:0");
    fake_case_close(&one);
  }
}

static void a_dominated_device_is_never_chosen(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1000, 1000000000, 0);
  one.controls[1].real_ns = 2000000;
  fake_case_open(&one, "ab", "reference");
  for (int i = 0; i < 200; i++) assert_string_equal(ran_on(&one, NULL), "fake_a:0");
  fake_case_close(&one);
}

/* ---- who may ---- */

static void an_excluded_device_is_not_used(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100, 200, 300);
  fake_case_open(&one, "ab", "fake_a");
  assert_string_equal(ran_on(&one, NULL), "fake_b:0");
  assert_int_equal(launches(&one, 0), 0);
  fake_case_close(&one);
}

static void only_the_device_asked_for_is_used(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100, 200, 300);
  fake_case_open(&one, "ab", NULL);
  const uint32_t b = fake_device_index(&one, "fake_b:0");
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .device_plus_one = b + 1 };
  assert_string_equal(ran_on(&one, &options), "fake_b:0");
  atomic_store(&one.controls[1].launch_status, TM_ERROR_INTERNAL);
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &one.x, 1, &one.y, 1, &options, &error), TM_ERROR_NO_DEVICE);
  assert_int_equal(launches(&one, 0), 0);
  fake_case_close(&one);
}

static void a_weaker_class_is_only_used_when_accepted(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1, 0, 0);
  one.controls[0].numerics = TM_NUMERICS_N1;
  one.controls[0].numerics_bound = 2;
  fake_case_open(&one, "a", NULL);
  tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0 };
  assert_string_equal(ran_on(&one, &options), "reference:0");
  options.worst_numerics = TM_NUMERICS_N1;
  const tm_run_report report = fake_case_run(&one, &options);
  assert_string_equal(fake_device_name(&one, report.device), "fake_a:0");
  assert_int_equal(report.numerics, TM_NUMERICS_N1);
  fake_case_close(&one);
}

static void a_device_that_varies_is_not_used_for_equal_bits(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1, 0, 0);
  one.controls[0].numerics_flags = 0;
  fake_case_open(&one, "a", NULL);
  assert_string_equal(ran_on(&one, NULL), "fake_a:0");
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .run_to_run = 1 };
  assert_string_equal(ran_on(&one, &options), "reference:0");
  fake_case_close(&one);
}

/* ---- once per request ---- */

static void a_repeated_request_asks_nobody(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100, 0, 0);
  fake_case_open(&one, "a", "reference");  /* nobody to be tried beside it */
  for (int i = 0; i < 50; i++) (void)fake_case_run(&one, NULL);
  assert_int_equal(atomic_load(&one.controls[0].queries), 1);
  assert_int_equal(atomic_load(&one.controls[0].prepares), 1);
  assert_int_equal(atomic_load(&one.context->placements.query_count), 1);
  tm_memory_usage before = { .struct_size = sizeof before }, after = before;
  tm_context_memory_usage(one.context, &before);
  for (int i = 0; i < 50; i++) (void)fake_case_run(&one, NULL);
  tm_context_memory_usage(one.context, &after);
  assert_int_equal(after.used_bytes, before.used_bytes);
  assert_int_equal(after.peak_bytes, before.peak_bytes);
  fake_case_close(&one);
  assert_int_equal(atomic_load(&one.controls[0].releases), 1);
}

static void a_moved_epoch_is_asked_again(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100, 0, 0);
  fake_case_open(&one, "a", NULL);
  assert_string_equal(ran_on(&one, NULL), "fake_a:0");
  one.controls[0].only_op = TM_OP_ADD;
  atomic_store(&one.controls[0].epoch, 2);
  one.controls[0].host->device_event(one.controls[0].host->context, 0, TM_EVENT_EPOCH_MOVED, 2);
  assert_string_equal(ran_on(&one, NULL), "reference:0");
  assert_int_equal(atomic_load(&one.controls[0].queries), 2);
  fake_case_close(&one);
}

/* The event may be missed: an answer that prepare calls stale is asked for again, and nobody falls back. */
static void a_stale_answer_is_asked_again(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100, 0, 0);
  fake_case_open(&one, "a", NULL);
  tm_explanation *explanation = NULL;
  const tm_operand x = *tm_tensor_operand(one.x), y = { .format = TM_FORMAT_F32 };
  assert_int_equal(tm_explain(one.context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, NULL, &explanation, NULL), TM_OK);
  tm_explanation_destroy(explanation);
  (void)fake_case_run(&one, NULL);
  atomic_store(&one.controls[0].epoch, 2);
  tm_tensor *const both[] = { one.x, one.x };
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  assert_int_equal(tm_run(one.context, TM_OP_ADD, NULL, 0, both, 2, &one.y, 1, &options, NULL), TM_OK);
  assert_string_equal(fake_device_name(&one, report.device), "fake_a:0");
  assert_int_equal(report.retries, 0);
  atomic_store(&one.controls[0].prepare_status, TM_STALE);      /* for ever: then somebody else does it */
  atomic_fetch_add(&one.context->inventory->generation, 1);
  assert_string_equal(ran_on(&one, NULL), "reference:0");
  fake_case_close(&one);
}

/* The same request takes no more memory, however often devices changed. */
static void what_is_out_of_date_is_not_kept(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100, 0, 0);
  fake_case_open(&one, "a", NULL);
  (void)fake_case_run(&one, NULL);
  const uint32_t count = one.context->placements.count;
  for (uint32_t change = 0; change < 20; change++) {
    atomic_store(&one.controls[0].epoch, 2 + change);
    one.controls[0].host->device_event(one.controls[0].host->context, 0, TM_EVENT_EPOCH_MOVED, 2 + change);
    (void)fake_case_run(&one, NULL);
    assert_int_equal(one.context->placements.count, count);
  }
  fake_case_close(&one);
}

static void many_requests_stay_bounded(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100, 0, 0);
  fake_case_open(&one, "a", NULL);
  float *data = tm_tensor_data(one.x);
  for (uint64_t count = 1; count <= 3000; count++) {
    const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { count % 50 + 1, count / 50 % 20 + 1 },
                                .strides_bytes = { 4 * (int64_t)(count / 50 % 20 + 1), 4 } };
    tm_tensor *x = NULL, *y = NULL;
    assert_int_equal(tm_tensor_wrap(one.context, &layout, data, FAKE_ELEMENTS * 4, &x, NULL), TM_OK);
    assert_int_equal(tm_tensor_create(one.context, TM_FORMAT_F32, 2, layout.dims, &y, NULL), TM_OK);
    tm_tensor *const both[] = { x, x };
    assert_int_equal(tm_run(one.context, count % 2 == 0 ? TM_OP_ADD : TM_OP_MUL, NULL, 0, both, 2, &y, 1, NULL, NULL), TM_OK);
    tm_tensor_destroy(x);
    tm_tensor_destroy(y);
    assert_true(one.context->placements.count <= 1024);
  }
  fake_case_close(&one);
  assert_int_equal(atomic_load(&one.controls[0].releases), atomic_load(&one.controls[0].prepares));
}

/* ---- prices that are learned ---- */

/* On a clock that nothing but the work of the fakes moves: what else the machine does is not seen. */
static _Atomic uint64_t clock_ns;

static uint64_t virtual_now(void *context) {
  (void)context;
  return atomic_load(&clock_ns);
}

static uint64_t real_ns(const fake_control *control, uint32_t op, uint64_t elements, uint64_t launch) {
  (void)op, (void)elements, (void)launch;
  return control->real_ns;
}

static void open_timed(fake_case *one, const char *letters) {
  atomic_store(&clock_ns, 1000);
  for (int i = 0; i < FAKES; i++) {
    one->controls[i].clock_ns = &clock_ns;
    one->controls[i].virtual_ns = real_ns;
    one->controls[i].computes_all_the_same = 1;
  }
  fake_case_open(one, letters, "reference");
  one->context->inventory->clock = (tm_clock){ virtual_now, NULL };
}

static void an_optimist_loses_its_place(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1000, 50000, 0);
  one.controls[0].real_ns = 1000000;            /* a thousand times what it says */
  one.controls[1].real_ns = 50000;
  open_timed(&one, "ab");
  for (int i = 0; i < 30; i++) (void)fake_case_run(&one, NULL);
  assert_string_equal(ran_on(&one, NULL), "fake_b:0");
  const uint64_t before = launches(&one, 0);
  assert_true(before < 15);
  fake_case_close(&one);
}

static void a_pessimist_is_found_out(void **state) {
  (void)state;
  static const uint64_t lies[] = { 10, 100 };
  for (int i = 0; i < 2; i++) {
    fake_case one = { 0 };
    set_costs(&one, 100000, 5000 * lies[i], 0);
    one.controls[0].real_ns = 100000;
    one.controls[1].real_ns = 5000;
    if (5000 * lies[i] < 100000) one.controls[1].cost_ns = 150000;
    open_timed(&one, "ab");
    assert_string_equal(ran_on(&one, NULL), "fake_a:0");
    int runs = 0;
    while (strcmp(ran_on(&one, NULL), "fake_b:0") != 0 && runs < 20000) runs++;
    for (int more = 0; more < 5000; more++) (void)fake_case_run(&one, NULL);
    const uint64_t before = launches(&one, 1);
    for (int more = 0; more < 100; more++) (void)fake_case_run(&one, NULL);
    assert_in_range(launches(&one, 1) - before, 95, 100);
    fake_case_close(&one);
  }
}

/* Trying costs a hundredth of the time at most. */
static void trying_is_paid_from_a_budget(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 200000, 1600000, 0);
  one.controls[0].real_ns = 200000;
  one.controls[1].real_ns = 1600000;            /* no liar at all */
  open_timed(&one, "ab");
  for (int i = 0; i < 3000; i++) (void)fake_case_run(&one, NULL);
  assert_in_range(launches(&one, 1), 1, 60);
  fake_case_close(&one);
}

static void equal_bits_stay_where_they_are(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1000, 50000, 0);
  one.controls[0].real_ns = 1000000;
  open_timed(&one, "ab");
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .run_to_run = 1 };
  for (int i = 0; i < 40; i++) assert_string_equal(ran_on(&one, &options), "fake_a:0");
  fake_case_close(&one);
}

static void one_slow_run_does_not_flip(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 100000, 500000, 0);
  one.controls[0].real_ns = 100000;
  one.controls[1].real_ns = 500000;
  open_timed(&one, "ab");
  for (int i = 0; i < 10; i++) (void)fake_case_run(&one, NULL);
  one.controls[0].real_ns = 20000000;
  (void)fake_case_run(&one, NULL);
  one.controls[0].real_ns = 100000;
  int elsewhere = 0;
  for (int i = 0; i < 20; i++) elsewhere += strcmp(ran_on(&one, NULL), "fake_a:0") != 0;
  assert_in_range(elsewhere, 0, 4);             /* the other may be tried, but stays the other */
  assert_string_equal(ran_on(&one, NULL), "fake_a:0");
  fake_case_close(&one);
}

/* Every run of a program with ever new shapes teaches something. */
static void shapes_seen_once_are_learned_from(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1000, 0, 0);
  one.controls[0].real_ns = 50000;
  open_timed(&one, "a");
  for (uint64_t count = 100; count < 130; count++) {
    tm_tensor *x = NULL, *y = NULL;
    assert_int_equal(tm_tensor_create(one.context, TM_FORMAT_F32, 1, &count, &x, NULL), TM_OK);
    assert_int_equal(tm_tensor_create(one.context, TM_FORMAT_F32, 1, &count, &y, NULL), TM_OK);
    tm_run_report report = { .struct_size = sizeof report };
    const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
    assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &options, NULL), TM_OK);
    if (count == 129) assert_in_range(report.expected_ns, 25000, 200000);
    tm_tensor_destroy(x);
    tm_tensor_destroy(y);
  }
  fake_case_close(&one);
}

/* ---- broken promises ---- */

static void a_broken_promise_costs_the_placement(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1, 0, 0);
  atomic_store(&one.controls[0].launch_status, TM_ERROR_INTERNAL);
  fake_case_open(&one, "a", NULL);
  const tm_run_report report = fake_case_run(&one, NULL);
  assert_string_equal(fake_device_name(&one, report.device), "reference:0");
  assert_int_equal(report.retries, 1);
  assert_int_equal(report.fell_back, 1);
  for (int i = 0; i < 10; i++) assert_int_equal(fake_case_run(&one, NULL).retries, 0);
  assert_int_equal(launches(&one, 0), 1);
  tm_device_description description = { .struct_size = sizeof description };
  (void)tm_device_describe(one.context, fake_device_index(&one, "fake_a:0"), &description);
  assert_int_equal(description.violation_count, 1);
  fake_case_close(&one);
}

static void lack_of_memory_is_no_broken_promise(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1, 0, 0);
  atomic_store(&one.controls[0].launch_status, TM_ERROR_NO_MEMORY);
  fake_case_open(&one, "a", NULL);
  const tm_run_report report = fake_case_run(&one, NULL);
  assert_int_equal(report.retries, 1);
  assert_int_equal(report.fell_back, 0);
  atomic_store(&one.controls[0].launch_status, TM_OK);
  assert_string_equal(ran_on(&one, NULL), "fake_a:0");
  fake_case_close(&one);
}

/* A device that never has memory is passed over for a while instead of being asked, in vain, each time. */
static void lasting_lack_of_memory_costs_the_placement_for_a_while(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1, 0, 0);
  atomic_store(&one.controls[0].launch_status, TM_ERROR_NO_MEMORY);
  fake_case_open(&one, "a", NULL);
  for (int i = 0; i < 1000; i++) assert_string_equal(ran_on(&one, NULL), "reference:0");
  assert_in_range(launches(&one, 0), 2, 30);
  atomic_store(&one.controls[0].launch_status, TM_OK);
  int waited = 0;
  while (strcmp(ran_on(&one, NULL), "fake_a:0") != 0 && waited < 5000) waited++;
  assert_in_range(waited, 0, 4100);
  fake_case_close(&one);
}

static void a_lost_device_is_not_used_again(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1, 0, 0);
  atomic_store(&one.controls[0].launch_status, TM_ERROR_DEVICE_LOST);
  fake_case_open(&one, "a", NULL);
  assert_string_equal(ran_on(&one, NULL), "reference:0");
  atomic_store(&one.controls[0].launch_status, TM_OK);
  assert_string_equal(ran_on(&one, NULL), "reference:0");
  tm_device_description description = { .struct_size = sizeof description };
  (void)tm_device_describe(one.context, fake_device_index(&one, "fake_a:0"), &description);
  assert_int_equal(description.state, TM_DEVICE_LOST);
  fake_case_close(&one);
}

static void nobody_can_names_every_candidate(void **state) {
  (void)state;
  fake_case one = { 0 };
  set_costs(&one, 1, 1, 0);
  one.controls[0].only_op = TM_OP_ADD;
  atomic_store(&one.controls[1].launch_status, TM_ERROR_INTERNAL);
  fake_case_open(&one, "ab", "reference");
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &one.x, 1, &one.y, 1, NULL, &error), TM_ERROR_NO_DEVICE);
  assert_int_equal(error.code, TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, "fake_a:0 (the fake does not want it)"));
  assert_non_null(strstr(error.text, "fake_b:0"));
  assert_non_null(strstr(error.text, "told to fail"));
  fake_case_close(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_cheapest_is_chosen_under_any_name_and_order),
    cmocka_unit_test(a_tie_goes_by_identity_under_any_name_and_order),
    cmocka_unit_test(made_up_identities_are_those_of_files),
    cmocka_unit_test(a_tie_without_identities_does_not_go_by_order),
    cmocka_unit_test(devices_of_one_identity_are_kept_apart_and_told),
    cmocka_unit_test(scaling_all_costs_changes_nothing),
    cmocka_unit_test(a_dominated_device_is_never_chosen),
    cmocka_unit_test(an_excluded_device_is_not_used),
    cmocka_unit_test(only_the_device_asked_for_is_used),
    cmocka_unit_test(a_weaker_class_is_only_used_when_accepted),
    cmocka_unit_test(a_device_that_varies_is_not_used_for_equal_bits),
    cmocka_unit_test(a_repeated_request_asks_nobody),
    cmocka_unit_test(a_moved_epoch_is_asked_again),
    cmocka_unit_test(a_stale_answer_is_asked_again),
    cmocka_unit_test(what_is_out_of_date_is_not_kept),
    cmocka_unit_test(many_requests_stay_bounded),
    cmocka_unit_test(an_optimist_loses_its_place),
    cmocka_unit_test(a_pessimist_is_found_out),
    cmocka_unit_test(trying_is_paid_from_a_budget),
    cmocka_unit_test(equal_bits_stay_where_they_are),
    cmocka_unit_test(one_slow_run_does_not_flip),
    cmocka_unit_test(shapes_seen_once_are_learned_from),
    cmocka_unit_test(a_broken_promise_costs_the_placement),
    cmocka_unit_test(lack_of_memory_is_no_broken_promise),
    cmocka_unit_test(lasting_lack_of_memory_costs_the_placement_for_a_while),
    cmocka_unit_test(a_lost_device_is_not_used_again),
    cmocka_unit_test(nobody_can_names_every_candidate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
