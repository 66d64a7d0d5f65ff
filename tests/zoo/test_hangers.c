/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins that never come back from a call: the result is there all the same, the device is given up and says why, and the
 * context ends.  How often somebody hung is counted, not timed; what never ends meets the time limit of the whole test.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "fakes/fake_control.h"
#include "formats/scratch.h"
#include "unit/plugin/plugin_case.h"
#include "zoo/every_operation.h"
#include "zoo/kept_heap.h"

#define HANGER(call) ZOO_FOLDER "/hangers/hangs_in_" call ".so"
#define MS UINT64_C(1000000)
/* Far more than any call takes on a machine under load, and what every hang of these tests costs. */
#define PATIENCE_NS (800 * MS)
/* Where an honest call took longer than that after all, and is blamed, the same is tried with more patience; nothing else is. */
#define MOST_PATIENCE_NS (16 * PATIENCE_NS)

static keeper all_blocks;
static _Atomic uint32_t hangs;  /* how many calls there were from which nobody comes back */

static void note_hang(void *context, uint32_t level, const char *message) {
  (void)context, (void)level;
  if (strstr(message, "it hangs from now on") != NULL) atomic_fetch_add(&hangs, 1);
}

static tm_context *open_patient(const char *const *paths, uint32_t count, uint64_t patience_ns, log_lines *lines) {
  tm_context_options options = options_with(paths, count);
  static const char *const excluded[] = { "cpu" };
  options.excluded_devices = excluded;
  options.excluded_device_count = 1;
  options.patience_ns = patience_ns;
  options.alloc = keep_alloc;
  options.free = keep_free;
  options.allocator_context = &all_blocks;
  options.log = note_hang;
  if (lines != NULL) {
    lines->length = 0;
    options.log = keep_line;
    options.log_context = lines;
  }
  return open_context(&options);
}

/* So large that it is worth the way to a device with memory of its own. */
static tm_run_report run_large(tm_context *context) {
  const uint64_t count = 1u << 20;
  tm_tensor *x = vector_of(context, count, 1, 1), *y = vector_of(context, count, 0, 0);
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  tm_error error = TM_ERROR_INIT;
  if (tm_run(context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &options, &error) != TM_OK) fail_msg("%s", error.text);
  const float *from = tm_tensor_data(x), *to = tm_tensor_data(y);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; i++) wrong += from[i] != 1 + (float)i || to[i] != -from[i];
  assert_int_equal(wrong, 0);
  tm_tensor_destroy(y);
  tm_tensor_destroy(x);
  return report;
}

/* ---- one at a time ---- */

typedef struct hang_case {
  const char *name;             /* of the call */
  const char *path;
  uint32_t    falls_back;       /* the run meets the hang */
  const char *reason;           /* why the device is quarantined afterwards; NULL: it is not */
  uint64_t    more_ms;          /* and its reason names the patience and so much more; NO_TIME: none */
} hang_case;

#define NO_TIME UINT64_MAX

static const hang_case cases[] = {
  { "query", HANGER("query"), 0, "query did not return within", 0 },
  { "open", HANGER("open"), 1, "open did not return within", 0 },
  { "prepare", HANGER("prepare"), 1, "prepare did not return within", 0 },
  { "launch", HANGER("launch"), 1, "launch did not return within", 0 },
  { "far_launch", HANGER("far_launch"), 1, "launch did not return within", 0 },
  { "pool", HANGER("pool"), 1, "launch did not return within", 0 },
  { "own_thread", HANGER("own_thread"), 1, "launch did not return within", 0 },
  { "wait", HANGER("wait"), 1, "wait did not return within", 20 },
  { "upload", HANGER("upload"), 1, "upload did not return within", 0 },
  { "download", HANGER("download"), 1, "download did not return within", 0 },
  { "cancel", HANGER("cancel"), 1, "cancel did not return within", 0 },
  { "buffer_create", HANGER("buffer_create"), 1, "buffer_create did not return within", 0 },
  { "buffer_destroy", HANGER("buffer_destroy"), 1, "buffer_destroy did not return within", 0 },
  { "work", HANGER("work"), 1, "did not finish in the time", NO_TIME },
  { "full", HANGER("full"), 1, "a queue was full for", 0 },
  { "far_full", HANGER("far_full"), 1, "a queue was full for", 0 },
  { "release", HANGER("release"), 0, NULL, NO_TIME },
  { "close", HANGER("close"), 0, NULL, NO_TIME },
  { "shutdown", HANGER("shutdown"), 0, NULL, NO_TIME },
};

/* Some call was too slow, and not the one that hangs: that it took so long is the machine's doing. */
static bool is_honest_call_blamed(const tm_device_description *found, const hang_case *one) {
  static const char *const too_slow[] = { "did not return within", "did not finish in the time", "a queue was full for" };
  char own[64];
  snprintf(own, sizeof own, "%s did not return within", one->name);
  if (found->state != TM_DEVICE_QUARANTINED || strstr(found->reason, one->reason == NULL ? own : one->reason) != NULL) return false;
  for (size_t i = 0; i < sizeof too_slow / sizeof too_slow[0]; i++)
    if (strstr(found->reason, too_slow[i]) != NULL) return true;
  return false;
}

static bool is_blamed_as_expected(const tm_device_description *found, const hang_case *one, uint64_t patience_ns) {
  char reason[128];
  if (one->reason == NULL) return found->state == TM_DEVICE_READY;
  if (one->more_ms == NO_TIME) snprintf(reason, sizeof reason, "%s", one->reason);
  else snprintf(reason, sizeof reason, "%s %llu ms", one->reason, (unsigned long long)(patience_ns / MS + one->more_ms));
  return found->state == TM_DEVICE_QUARANTINED && strstr(found->reason, reason) != NULL;
}

typedef enum outcome { AS_EXPECTED, NOT_AS_EXPECTED, TOO_HASTY } outcome;

/* The hang is met once, whatever runs behind it: where the device is given up, nobody comes near it any more. */
static outcome try_hang(const hang_case *one, uint64_t patience_ns) {
  device_name name;
  atomic_store(&hangs, 0);
  tm_context *context = open_patient(&one->path, 1, patience_ns, NULL);
  bool is_right = true;
  for (int i = 0; i < 3; i++) {
    const tm_run_report report = run_large(context);
    const uint32_t expected = i == 0 ? one->falls_back : 0;
    is_right = is_right && report.retries == expected && (i > 0 || report.fell_back == expected);
  }
  const char *device = device_name_of(context, one->path, &name);
  const tm_device_description found = describe_device(context, device);
  is_right = is_right && is_blamed_as_expected(&found, one, patience_ns);
  const bool is_hasty = is_honest_call_blamed(&found, one);
  if (!is_right) print_message("%s is in state %u because '%s'\n", device, found.state, found.reason);
  tm_context_destroy(context);
  if (atomic_load(&hangs) != 1) print_message("%s hung %u times\n", one->name, atomic_load(&hangs));
  if (is_hasty) return TOO_HASTY;
  return is_right && atomic_load(&hangs) == 1 ? AS_EXPECTED : NOT_AS_EXPECTED;
}

static void the_result_is_there_all_the_same(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t patience_ns = PATIENCE_NS;
    outcome found = try_hang(&cases[i], patience_ns);
    while (found == TOO_HASTY && patience_ns < MOST_PATIENCE_NS) found = try_hang(&cases[i], patience_ns *= 4);
    if (found == TOO_HASTY) fail_msg("%s is not told from what is honest", cases[i].name);
    if (found != AS_EXPECTED) fail_msg("%s is not met as it should be", cases[i].name);
  }
}

/* Found by the trial in a process of its own, or here. */
static void one_that_does_not_start_is_listed(void **state) {
  (void)state;
  static const char *const paths[] = { HANGER("init"), HANGER("device_info") };
  tm_context *context = open_patient(paths, 2, PATIENCE_NS, NULL);
  for (uint32_t i = 0; i < 2; i++) {
    const tm_backend_description found = backend_of(context, paths[i]);
    assert_true(found.state == TM_BACKEND_QUARANTINED || found.state == TM_BACKEND_REFUSED);
    assert_true(strlen(found.reason) > 0);
  }
  (void)run_on(context, TM_OP_NEG, TM_ANY_DEVICE);
  tm_context_destroy(context);
}

/* ---- several callers ---- */

#define CALLERS 4

static void *run_once_more(void *context) {
  enum { COUNT = 500 };
  float x[COUNT], y[COUNT];
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 1, .dims = { COUNT } };
  tm_tensor *from = NULL, *to = NULL;
  for (int i = 0; i < COUNT; i++) x[i] = (float)i;
  bool is_right = tm_tensor_wrap(context, &layout, x, sizeof x, &from, NULL) == TM_OK &&
                  tm_tensor_wrap(context, &layout, y, sizeof y, &to, NULL) == TM_OK &&
                  tm_run(context, TM_OP_NEG, NULL, 0, &from, 1, &to, 1, NULL, NULL) == TM_OK;
  for (int i = 0; i < COUNT && is_right; i++) is_right = x[i] == (float)i && y[i] == -(float)i;
  tm_tensor_destroy(from);
  tm_tensor_destroy(to);
  return is_right ? context : NULL;
}

/* Each loses its thread, or finds the device given up; memory on their stacks is theirs again afterwards. */
static void several_callers_meet_the_same_hang(void **state) {
  (void)state;
  static const char *const paths[] = { HANGER("launch"), HANGER("own_thread"), HANGER("open") };
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    tm_context *context = open_patient(&paths[i], 1, PATIENCE_NS, NULL);
    pthread_t callers[CALLERS];
    for (int j = 0; j < CALLERS; j++) assert_int_equal(pthread_create(&callers[j], NULL, run_once_more, context), 0);
    for (int j = 0; j < CALLERS; j++) {
      void *result = NULL;
      assert_int_equal(pthread_join(callers[j], &result), 0);
      assert_ptr_equal(result, context);
    }
    tm_context_destroy(context);
  }
}

/* ---- the pool ---- */

#define LANES 3

static void note_lane(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  _Atomic uint32_t *seen = argument;
  (void)begin, (void)end;
  if (lane < LANES) atomic_store(&seen[lane], 1);
  const struct timespec pause = { 0, 5000000 };
  (void)nanosleep(&pause, NULL);
}

/* What hangs in the pool keeps its threads; the others get new ones. */
static void who_hangs_in_the_pool_does_not_keep_it(void **state) {
  (void)state;
  static fake_control control;
  device_name name;
  static const char *const paths[] = { HANGER("pool"), TM_BINARY_DIR "/tests/fakes/fake_a.so" };
  const tm_named_pointer pointer = { "fake_a", FAKE_CONTROL_KEY, &control };
  tm_context_options options = options_with(paths, 2);
  options.pointers = &pointer;
  options.pointer_count = 1;
  options.patience_ns = PATIENCE_NS;
  options.alloc = keep_alloc;
  options.free = keep_free;
  options.allocator_context = &all_blocks;
  tm_context *context = open_context(&options);
  const uint32_t hanger = device_of(context, device_name_of(context, paths[0], &name));
  const tm_run_options there = { .struct_size = sizeof there, .worst_numerics = TM_NUMERICS_DEFAULT, .device_plus_one = hanger + 1 };
  assert_int_equal(run_checked(context, TM_OP_NEG, &there, NULL), TM_ERROR_NO_DEVICE);
  _Atomic uint32_t seen[LANES] = { 0 };
  control.host->parallel_for(control.host->context, 60, 1, note_lane, seen);
  for (int i = 0; i < LANES; i++) assert_int_equal(atomic_load(&seen[i]), 1);
  tm_context_destroy(context);
}

/* ---- remembered ---- */

static tm_context *open_remembering(const char *path, const char *folder) {
  tm_context_options options = options_with(&path, 1);
  options.patience_ns = PATIENCE_NS;
  options.state_folder = folder;
  options.alloc = keep_alloc;
  options.free = keep_free;
  options.allocator_context = &all_blocks;
  options.log = note_hang;
  atomic_store(&hangs, 0);
  return open_context(&options);
}

/* Else every process would wait for it at its end. */
static void a_hang_at_the_end_is_met_once(void **state) {
  (void)state;
  static const char *const calls[] = { "release", "close", "shutdown" };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    char path[1024];
    device_name name;
    scratch folder;
    assert_true(scratch_init(&folder));
    snprintf(path, sizeof path, "%s/hangers/hangs_in_%s.so", ZOO_FOLDER, calls[i]);
    tm_context *context = open_remembering(path, folder.folder);
    const char *device = device_name_of(context, path, &name);
    assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, device)).fell_back, 0);
    tm_context_destroy(context);
    assert_int_equal(atomic_load(&hangs), 1);

    context = open_remembering(path, folder.folder);
    const tm_device_description found = describe_device(context, device);
    assert_int_equal(found.state, TM_DEVICE_QUARANTINED);
    assert_non_null(strstr(found.reason, calls[i]));
    (void)run_on(context, TM_OP_NEG, TM_ANY_DEVICE);
    tm_context_destroy(context);
    assert_int_equal(atomic_load(&hangs), 0);

    context = open_remembering(path, folder.folder);
    assert_int_equal(tm_context_forgive(context, backend_of(context, path).name, NULL, NULL), TM_OK);
    assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, device)).fell_back, 0);
    tm_context_destroy(context);
    assert_int_equal(atomic_load(&hangs), 1);
    scratch_deinit(&folder);
  }
}

/* ---- late is no better ---- */

/* What a late call writes goes nowhere, and what it asks of a context that is gone gets no answer. */
static void who_comes_back_late_finds_nobody(void **state) {
  (void)state;
  static const char *const path[] = { ZOO_FOLDER "/hangers/late.so" };
  static log_lines lines;
  device_name name;
  tm_context *context = open_patient(path, 1, PATIENCE_NS, &lines);
  const uint64_t count = 4096;
  tm_tensor *x = vector_of(context, count, 1, 1), *y = vector_of(context, count, 0, 0);
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  assert_int_equal(tm_run(context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &options, NULL), TM_OK);
  assert_int_equal(report.fell_back, 1);
  assert_int_equal(describe_device(context, device_name_of(context, path[0], &name)).violation_count, 1);
  const struct timespec until_it_is_back = { 1, 500000000 };
  (void)nanosleep(&until_it_is_back, NULL);
  const float *from = tm_tensor_data(x), *to = tm_tensor_data(y);
  for (uint64_t i = 0; i < count; i++) {
    assert_true(from[i] == 1 + (float)i);
    assert_true(to[i] == -from[i]);
  }
  assert_int_equal(describe_device(context, device_name_of(context, path[0], &name)).state, TM_DEVICE_QUARANTINED);
  tm_tensor_destroy(y);
  tm_tensor_destroy(x);
  tm_context_destroy(context);

  context = open_patient(path, 1, PATIENCE_NS, &lines);
  assert_int_equal(run_on(context, TM_OP_NEG, TM_ANY_DEVICE).fell_back, 1);
  tm_context_destroy(context);
  const uint64_t said = lines.length;
  (void)nanosleep(&until_it_is_back, NULL);
  assert_int_equal(lines.length, said);
}

/* ---- at the end ---- */

static _Atomic(const void *) last_freed;

static void note_free(void *context, void *memory, uint64_t bytes) {
  (void)context, (void)bytes;
  atomic_store(&last_freed, memory);
}

/* Where one hung at the end once it is not shut down any more, but all else is done as ever. */
static void who_hung_at_the_end_before_costs_no_context(void **state) {
  (void)state;
  static const char *const path[] = { HANGER("shutdown") };
  scratch folder;
  assert_true(scratch_init(&folder));
  for (int start = 0; start < 3; start++) {
    tm_context_options options = options_with(path, 1);
    options.patience_ns = PATIENCE_NS;
    options.state_folder = folder.folder;
    options.alloc = keep_alloc;
    options.free = note_free;
    options.allocator_context = &all_blocks;
    options.log = note_hang;
    atomic_store(&hangs, 0);
    tm_context *context = open_context(&options);
    device_name name;
    const uint32_t device = device_of(context, device_name_of(context, path[0], &name));
    if (start == 0) assert_int_equal(run_on(context, TM_OP_NEG, device).fell_back, 0);
    tm_context_destroy(context);
    assert_int_equal(atomic_load(&hangs), start == 0);
    if (start == 0) continue;
    assert_ptr_equal(atomic_load(&last_freed), context);
  }
  scratch_deinit(&folder);
}

/* ---- giving back ---- */

static void *ask_for_too_much(void *context) {
  tm_tensor *tensor = NULL;
  const uint64_t count = UINT64_C(1) << 40;
  return tm_tensor_create(context, TM_FORMAT_F32, 1, &count, &tensor, NULL) == TM_ERROR_NO_MEMORY ? context : NULL;
}

/* Somebody hangs while he gives memory back.  Returns whether a run elsewhere ended before that was noticed. */
static bool is_done_meanwhile(uint64_t patience_ns) {
  static const char *const path[] = { HANGER("release") };
  tm_context_options options = options_with(path, 1);
  options.patience_ns = patience_ns;
  options.max_memory_bytes = UINT64_C(1) << 30;
  options.alloc = keep_alloc;
  options.free = keep_free;
  options.allocator_context = &all_blocks;
  options.log = note_hang;
  atomic_store(&hangs, 0);
  tm_context *context = open_context(&options);
  device_name name;
  assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, device_name_of(context, path[0], &name))).fell_back, 0);
  pthread_t thread;
  void *result = NULL;
  assert_int_equal(pthread_create(&thread, NULL, ask_for_too_much, context), 0);
  const struct timespec a_while = { 0, 2000000 };
  while (atomic_load(&hangs) == 0) (void)nanosleep(&a_while, NULL);
  assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, "reference:0")).fell_back, 0);
  const bool is_meanwhile = describe_device(context, device_name_of(context, path[0], &name)).state == TM_DEVICE_READY;
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, context);
  assert_int_equal(describe_device(context, device_name_of(context, path[0], &name)).state, TM_DEVICE_QUARANTINED);
  tm_context_destroy(context);
  return is_meanwhile;
}

/* What is kept for speed is given back where memory is short: kernels of such a device, too. */
static void who_hangs_while_memory_is_given_back_keeps_nobody(void **state) {
  (void)state;
  uint64_t patience_ns = PATIENCE_NS;
  while (patience_ns <= MOST_PATIENCE_NS && !is_done_meanwhile(patience_ns)) patience_ns *= 4;
  assert_true(patience_ns <= MOST_PATIENCE_NS);
}

/* ---- all together ---- */

static void everybody_together_gives_reference_results(void **state) {
  (void)state;
  static const char *const only_reference[] = { "reference" };
  assert_int_equal(setenv("TENSORMORPH_PLUGIN_PATH", ZOO_FOLDER "/hangers:" ZOO_FOLDER, 1), 0);
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_LOAD_PLUGINS, .thread_count = 2,
                                       .patience_ns = PATIENCE_NS, .alloc = keep_alloc, .free = keep_free, .allocator_context = &all_blocks };
  const tm_context_options plain = { .struct_size = sizeof plain, .devices = only_reference, .device_count = 1 };
  tm_context *zoo = open_context(&options);
  assert_int_equal(unsetenv("TENSORMORPH_PLUGIN_PATH"), 0);
  tm_context *reference = open_context(&plain);
  device_name name;
  for (int round = 0; round < 2; round++) every_operation_agrees(zoo, reference);
  assert_int_equal(fegetround(), FE_TONEAREST);
  assert_int_equal(describe_device(zoo, device_name_of(zoo, HANGER("query"), &name)).state, TM_DEVICE_QUARANTINED);
  tm_context_destroy(zoo);
  tm_context_destroy(reference);
}

/* ---- the thread that opened it ---- */

static void a_device_gets_all_calls_from_its_own_thread(void **state) {
  (void)state;
  static const char *const path[] = { ZOO("own_thread") };
  static log_lines lines;
  tm_context *context = open_patient(path, 1, 0, &lines);
  const uint32_t device = device_of(context, "zoo_own_thread:0");
  for (int i = 0; i < 8; i++) {
    assert_int_equal(run_on(context, TM_OP_NEG, device).fell_back, 0);
    assert_int_equal(run_on(context, TM_OP_ADD, device).fell_back, 0);
  }
  assert_int_equal(describe_device(context, "zoo_own_thread:0").violation_count, 0);
  tm_context_destroy(context);
  assert_null(strstr(lines.text, "stranger"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_result_is_there_all_the_same),
    cmocka_unit_test(one_that_does_not_start_is_listed),
    cmocka_unit_test(several_callers_meet_the_same_hang),
    cmocka_unit_test(who_hangs_in_the_pool_does_not_keep_it),
    cmocka_unit_test(a_hang_at_the_end_is_met_once),
    cmocka_unit_test(who_comes_back_late_finds_nobody),
    cmocka_unit_test(who_hung_at_the_end_before_costs_no_context),
    cmocka_unit_test(who_hangs_while_memory_is_given_back_keeps_nobody),
    cmocka_unit_test(everybody_together_gives_reference_results),
    cmocka_unit_test(a_device_gets_all_calls_from_its_own_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
