/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What conformance does not reach: reductions over several parts, queues, tickets, failures of the driver, compiled programs
 * that the host keeps, and operands larger than a buffer.  Runs on the real driver, through a loader that fails on demand.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "conformance/kernel_cases.h"
#include "conformance/subject.h"
#include "faulty_opencl.h"
#include "plugin/library.h"
#include "plugin/table.h"

#define SKIPPED 77
#define MILLISECOND UINT64_C(1000000)

typedef struct bench {
  tm_accelerator_backend_plugin table;
  subject      s;
  faulty_plan *faults;
  char         library[512];
} bench;

/* One cached program, kept the way a host keeps it. */
typedef struct kept_program {
  char     key[1024];
  char    *data;
  uint64_t bytes;
} kept_program;

static kept_program kept;

static tm_status keep(void *context, tm_string key, const void *data, uint64_t bytes) {
  (void)context;
  if (kept.data != NULL || key.length >= sizeof kept.key) return TM_ERROR_LIMIT;
  memcpy(kept.key, key.data, key.length);
  kept.key[key.length] = '\0';
  kept.data = malloc(bytes);
  kept.bytes = bytes;
  memcpy(kept.data, data, bytes);
  return TM_OK;
}

static tm_status recall(void *context, tm_string key, void *out_data, uint64_t *inout_bytes) {
  (void)context;
  if (kept.data == NULL || strlen(kept.key) != key.length || memcmp(kept.key, key.data, key.length) != 0) return TM_ERROR_NOT_FOUND;
  if (out_data != NULL) memcpy(out_data, kept.data, *inout_bytes < kept.bytes ? *inout_bytes : kept.bytes);
  *inout_bytes = kept.bytes;
  return TM_OK;
}

static tm_status open_with(bench *b, const char *setting) {
  subject_options options = { .table = &b->table, .threads = 2 };
  options.settings.words[options.settings.count++] = b->library;
  options.settings.words[options.settings.count++] = "specialize=0";
  if (setting != NULL) options.settings.words[options.settings.count++] = setting;
  return subject_open(&b->s, &options);
}

static bench the_bench;

static int start(void **state) {
  bench *b = &the_bench;
  memset(b->faults, 0, sizeof *b->faults);
  *state = b;
  return open_with(b, NULL) == TM_OK ? 0 : -1;
}

static int stop(void **state) {
  bench *b = *state;
  memset(b->faults, 0, sizeof *b->faults);
  subject_close(&b->s);
  return 0;
}

/* ---- an operation with its operands on the device ---- */

typedef struct run {
  kernel_case  c;
  tm_answer    answer;
  tm_kernel   *kernel;
  void        *images[CASE_MAX_OPERANDS];
  tm_binding   bindings[CASE_MAX_OPERANDS + 1];
  uint32_t     count;           /* of bindings */
} run;

static void describe(run *r, uint32_t op, uint32_t inputs, uint32_t format, uint32_t rank, const uint64_t *dims, const void *attributes) {
  const tm_op_row *row = tm_op_find(op);
  memset(r, 0, sizeof *r);
  if (attributes != NULL) memcpy(&r->c.attributes, attributes, row->attribute_bytes);
  r->c.operation = (tm_operation){ .struct_size = sizeof(tm_operation), .op = op, .version = row->version, .worst_numerics = TM_NUMERICS_N4,
                                   .attribute_bytes = row->attribute_bytes, .input_count = inputs, .output_count = 1,
                                   .operands = r->c.operands, .attributes = row->attribute_bytes != 0 ? &r->c.attributes : NULL };
  for (uint32_t i = 0; i < inputs; i++) {
    assert_int_equal(tm_operand_contiguous(format, rank, dims, &r->c.operands[i], NULL), TM_OK);
    r->c.operands[i].alignment = 64;
  }
  assert_int_equal(tm_op_infer_outputs(&r->c.operation, &r->c.operands[inputs], NULL), TM_OK);
  r->c.operands[inputs].alignment = 64;
  tm_op_normalize(&r->c.operation, r->c.operands);
}

static void make(bench *b, run *r) {
  uint64_t state = 5;
  r->answer = subject_ask(&b->s, &r->c.operation);
  assert_int_equal(r->answer.level, TM_LEVEL_NATIVE);
  r->count = r->c.operation.input_count + 1;
  for (uint32_t i = 0; i < r->count; i++) {
    const tm_operand *operand = &r->c.operands[i];
    const uint64_t bytes = operand->byte_count + 64;
    r->images[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(r->images[i], 0, bytes);
    const case_buffer view = { r->images[i], bytes, r->images[i], r->images[i] };
    if (i + 1 < r->count) buffer_fill(&view, operand, TEMPER_PLAIN, &state);
    r->bindings[i] = (tm_binding){ NULL, 0, operand->byte_count };
    assert_int_equal(subject_buffer(&b->s, r->images[i], bytes, &r->bindings[i].buffer), TM_OK);
  }
  if (r->answer.workspace_bytes != 0) {
    r->bindings[r->count].length = r->answer.workspace_bytes;
    assert_int_equal(b->s.table.buffer_create(b->s.device, 0, r->answer.workspace_bytes, &r->bindings[r->count].buffer), TM_OK);
    r->count++;
  }
  assert_int_equal(b->s.table.prepare(b->s.device, &r->c.operation, &r->answer, &r->kernel), TM_OK);
}

static void drop(bench *b, run *r) {
  b->s.table.release(b->s.device, r->kernel);
  for (uint32_t i = 0; i < r->count; i++) b->s.table.buffer_destroy(b->s.device, 0, r->bindings[i].buffer, r->bindings[i].length, 0);
  for (uint32_t i = 0; i < CASE_MAX_OPERANDS; i++) free(r->images[i]);
}

static tm_status launch(bench *b, const run *r, uint32_t queue, const tm_ticket *waits, uint32_t wait_count, tm_ticket *out_ticket) {
  const tm_launch what = { .struct_size = sizeof what, .queue = queue, .kernel = r->kernel, .bindings = r->bindings,
                           .waits = waits, .binding_count = r->count, .wait_count = wait_count };
  return b->s.table.launch(b->s.device, &what, out_ticket);
}

static tm_status wait_one(bench *b, tm_ticket ticket, uint64_t timeout_ns) {
  return b->s.table.wait(b->s.device, &ticket, 1, timeout_ns);
}

/* Launched, and bit for bit what the reference gives. */
static void compare(bench *b, run *r) {
  const uint32_t inputs = r->c.operation.input_count;
  const tm_op_row *row = tm_op_find(r->c.operation.op);
  const tm_operand *y = &r->c.operands[inputs];
  tm_ticket ticket = { 0, 0, 0 };
  void *pointers[CASE_MAX_OPERANDS];
  void *expected = malloc(y->byte_count), *actual = malloc(y->byte_count + 64);
  memcpy(pointers, r->images, sizeof pointers);
  pointers[inputs] = expected;
  row->reference(&r->c.operation, pointers, 0, row->units(&r->c.operation));
  assert_int_equal(launch(b, r, 0, NULL, 0, &ticket), TM_OK);
  assert_int_not_equal(ticket.value, 0);
  assert_int_equal(wait_one(b, ticket, TM_WAIT_FOREVER), TM_OK);
  assert_int_equal(subject_collect(&b->s, r->bindings[inputs].buffer, actual, y->byte_count), TM_OK);
  assert_memory_equal(actual, expected, y->byte_count);
  free(expected);
  free(actual);
}

/* ---- reductions over several parts ---- */

static void reduce(bench *b, uint32_t op, uint32_t format, uint32_t rank, const uint64_t *dims, uint32_t axes) {
  const tm_reduce_attributes attributes = { axes, 0 };
  run r;
  describe(&r, op, 1, format, rank, dims, &attributes);
  make(b, &r);
  if (r.answer.numerics != TM_NUMERICS_N0) print_message("no f64 here: %s is not exact\n", tm_op_find(op)->name);
  else compare(b, &r);
  drop(b, &r);
}

static void long_rows_follow_the_canonical_order(void **state) {
  const uint64_t row[] = { 2, 100003 }, column[] = { 70001, 3 }, both[] = { 40000, 1, 3 };
  static const uint32_t ops[] = { TM_OP_SUM, TM_OP_MEAN, TM_OP_MIN, TM_OP_MAX, TM_OP_ARGMAX };
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_F64, TM_FORMAT_I32 };
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
      reduce(*state, ops[i], formats[f], 2, row, 0x2);
      reduce(*state, ops[i], formats[f], 2, column, 0x1);
      if (ops[i] != TM_OP_ARGMAX) reduce(*state, ops[i], formats[f], 3, both, 0x5);
    }
}

static void large_tensors_have_exact_statistics(void **state) {
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_Q8_0, TM_FORMAT_I8 };
  const uint64_t dims[] = { 3, 70016 };
  for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
    run r;
    describe(&r, TM_OP_STATS, 1, formats[f], 2, dims, NULL);
    make(*state, &r);
    compare(*state, &r);
    drop(*state, &r);
    describe(&r, TM_OP_COMPARE_TENSORS, 2, formats[f], 2, dims, NULL);
    make(*state, &r);
    compare(*state, &r);
    drop(*state, &r);
  }
}

/* ---- queues ---- */

static void make_small(bench *b, run *r) {
  const uint64_t dims[] = { 1000 };
  describe(r, TM_OP_ADD, 2, TM_FORMAT_F32, 1, dims, NULL);
  make(b, r);
}

static void a_full_queue_is_busy_and_recovers(void **state) {
  bench *b = *state;
  run r;
  tm_ticket ticket = { 0, 0, 0 }, last = ticket;
  tm_status status = TM_OK;
  uint64_t launched = 1;
  make_small(b, &r);
  b->faults->is_stuck = 1;
  assert_int_equal(launch(b, &r, 0, NULL, 0, &last), TM_OK);
  for (; launched < 100000 && (status = launch(b, &r, 0, NULL, 0, &ticket)) == TM_OK; launched++) {
    assert_int_equal(ticket.value, last.value + 1);
    last = ticket;
  }
  assert_int_equal(status, TM_BUSY);
  assert_true(launched > 16);
  assert_int_equal(b->s.table.cancel(b->s.device, 0), TM_BUSY);
  b->faults->is_stuck = 0;
  assert_int_equal(wait_one(b, last, TM_WAIT_FOREVER), TM_OK);
  assert_int_equal(launch(b, &r, 0, NULL, 0, &ticket), TM_OK);
  assert_int_equal(wait_one(b, ticket, TM_WAIT_FOREVER), TM_OK);
  assert_int_equal(b->s.table.cancel(b->s.device, 0), TM_OK);
  drop(b, &r);
}

static void pending_is_said_only_after_the_timeout(void **state) {
  bench *b = *state;
  run r;
  tm_ticket ticket = { 0, 0, 0 };
  make_small(b, &r);
  b->faults->is_stuck = 1;
  const int32_t flushes = b->faults->is_flushed;
  assert_int_equal(launch(b, &r, 1, NULL, 0, &ticket), TM_OK);
  assert_int_equal(wait_one(b, ticket, TM_WAIT_POLL), TM_PENDING);
  assert_true(b->faults->is_flushed > flushes);
  const uint64_t begin = tm_now_ns();
  assert_int_equal(wait_one(b, ticket, 30 * MILLISECOND), TM_PENDING);
  assert_true(tm_now_ns() - begin >= 30 * MILLISECOND);
  b->faults->is_stuck = 0;
  assert_int_equal(wait_one(b, ticket, TM_WAIT_FOREVER), TM_OK);
  assert_int_equal(wait_one(b, ticket, TM_WAIT_POLL), TM_OK);
  drop(b, &r);
}

static void queues_wait_for_each_other(void **state) {
  bench *b = *state;
  run r;
  tm_ticket tickets[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
  make_small(b, &r);
  const tm_ticket unborn = { 1, 0, 1000000 }, nowhere = { 77, 0, 1 };
  assert_int_equal(launch(b, &r, 0, &unborn, 1, &tickets[0]), TM_ERROR_ARGUMENT);
  assert_int_equal(launch(b, &r, 0, &nowhere, 1, &tickets[0]), TM_ERROR_ARGUMENT);
  assert_int_equal(launch(b, &r, 77, NULL, 0, &tickets[0]), TM_ERROR_ARGUMENT);
  assert_int_equal(launch(b, &r, 0, NULL, 0, &tickets[0]), TM_OK);
  assert_int_equal(launch(b, &r, 1, tickets, 1, &tickets[1]), TM_OK);
  assert_int_equal(b->s.table.wait(b->s.device, tickets, 2, TM_WAIT_FOREVER), TM_OK);
  drop(b, &r);
}

/* ---- failures of the driver ---- */

static void a_failure_holds_until_cancel(void **state) {
  bench *b = *state;
  run r;
  tm_ticket first = { 0, 0, 0 }, second = first, other = first;
  make_small(b, &r);
  b->faults->event_status = -4;
  assert_int_equal(launch(b, &r, 0, NULL, 0, &first), TM_OK);
  assert_int_equal(wait_one(b, first, TM_WAIT_FOREVER), TM_ERROR_NO_MEMORY);
  assert_non_null(strstr(b->s.text, "CL_MEM_OBJECT_ALLOCATION_FAILURE"));
  assert_int_equal(launch(b, &r, 0, NULL, 0, &second), TM_OK);
  assert_int_equal(second.value, first.value + 1);
  assert_int_equal(wait_one(b, second, TM_WAIT_FOREVER), TM_ERROR_PREDECESSOR);
  assert_int_equal(launch(b, &r, 1, &first, 1, &other), TM_OK);
  assert_int_equal(wait_one(b, other, TM_WAIT_FOREVER), TM_ERROR_PREDECESSOR);
  const tm_ticket both[] = { second, first };
  assert_int_equal(b->s.table.wait(b->s.device, both, 2, TM_WAIT_FOREVER), TM_ERROR_PREDECESSOR);
  for (uint32_t queue = 0; queue < 2; queue++) assert_int_equal(b->s.table.cancel(b->s.device, queue), TM_OK);
  compare(b, &r);
  drop(b, &r);
}

static void a_kernel_that_dies_loses_the_device(void **state) {
  bench *b = *state;
  run r;
  tm_ticket ticket = { 0, 0, 0 };
  make_small(b, &r);
  b->faults->event_status = -5;
  assert_int_equal(launch(b, &r, 0, NULL, 0, &ticket), TM_OK);
  assert_int_equal(wait_one(b, ticket, TM_WAIT_FOREVER), TM_ERROR_DEVICE_LOST);
  assert_non_null(strstr(b->s.text, "CL_OUT_OF_RESOURCES"));
  assert_int_equal(launch(b, &r, 0, NULL, 0, &ticket), TM_ERROR_DEVICE_LOST);
  drop(b, &r);
}

static void lack_of_memory_enqueues_nothing(void **state) {
  bench *b = *state;
  run r;
  tm_buffer *buffer = NULL;
  tm_ticket ticket = { 0, 0, 0 };
  make_small(b, &r);
  b->faults->launch_error = -5;
  assert_int_equal(launch(b, &r, 0, NULL, 0, &ticket), TM_ERROR_NO_MEMORY);
  b->faults->launch_error = 0;
  b->faults->buffer_error = -4;
  assert_int_equal(b->s.table.buffer_create(b->s.device, 0, 64, &buffer), TM_ERROR_NO_MEMORY);
  assert_null(buffer);
  b->faults->buffer_error = 0;
  compare(b, &r);
  drop(b, &r);
}

/* The compiler's message, with file, line and device; then the device no longer claims it, in a new epoch. */
static void a_kernel_that_does_not_compile_is_not_claimed_again(void **state) {
  bench *b = *state;
  run r;
  tm_kernel *kernel = NULL;
  const uint64_t dims[] = { 1000 };
  describe(&r, TM_OP_ADD, 2, TM_FORMAT_F32, 1, dims, NULL);
  const tm_answer answer = subject_ask(&b->s, &r.c.operation);
  assert_int_equal(answer.level, TM_LEVEL_NATIVE);
  b->faults->build_error = -11;
  assert_int_equal(b->s.table.prepare(b->s.device, &r.c.operation, &answer, &kernel), TM_STALE);
  assert_null(kernel);
  assert_non_null(strstr(b->s.text, "CL_BUILD_PROGRAM_FAILURE"));
  assert_non_null(strstr(b->s.text, "elementwise on "));
  b->faults->build_error = 0;
  const tm_answer then = subject_ask(&b->s, &r.c.operation);
  assert_int_equal(then.level, TM_LEVEL_REFUSED);
  assert_true((then.reasons & TM_REASON_RESOURCES) != 0);
  assert_true(then.epoch > answer.epoch);
  tm_device_info info = { .struct_size = sizeof info };
  assert_int_equal(b->s.table.device_info(b->s.backend, 0, &info), TM_OK);
  assert_int_equal(info.epoch, then.epoch);
  const tm_transpose_attributes swap = { { 1, 0 } };
  const uint64_t matrix[] = { 30, 50 };
  describe(&r, TM_OP_TRANSPOSE, 1, TM_FORMAT_F32, 2, matrix, &swap);
  make(b, &r);                  /* of another program, so not touched by that */
  compare(b, &r);
  drop(b, &r);
}

/* ---- compiled programs ---- */

static void the_host_keeps_compiled_programs(void **state) {
  bench *b = *state;
  run r;
  free(kept.data);
  memset(&kept, 0, sizeof kept);
  for (int round = 0; round < 2; round++) {
    b->s.services.cache_get = recall;
    b->s.services.cache_put = keep;
    b->faults->binary_count = 0;
    make_small(b, &r);
    compare(b, &r);
    drop(b, &r);
    assert_non_null(kept.data);
    assert_int_equal(b->faults->binary_count, round);
    subject_close(&b->s);
    assert_int_equal(open_with(b, NULL), TM_OK);
  }
  memset(kept.data, 0, kept.bytes);     /* a binary that the driver does not take is compiled anew */
  b->s.services.cache_get = recall;
  make_small(b, &r);
  compare(b, &r);
  drop(b, &r);
  free(kept.data);
  memset(&kept, 0, sizeof kept);
}

/* ---- sizes ---- */

static void what_is_too_large_is_to_be_split(void **state) {
  bench *b = *state;
  run r;
  tm_buffer *buffer = NULL;
  const uint64_t dims[] = { 300, 1024 }, line[] = { 10000000 };
  subject_close(&b->s);
  assert_int_equal(open_with(b, "max_allocation_bytes=1048576"), TM_OK);
  assert_int_equal(b->s.space.largest_buffer_bytes, 1048576);
  for (int i = 0; i < 2; i++) {
    const tm_transpose_attributes swap = { { 1, 0 } };
    describe(&r, i == 0 ? TM_OP_TRANSPOSE : TM_OP_NEG, 1, TM_FORMAT_F32, i == 0 ? 2 : 1, i == 0 ? dims : line, i == 0 ? &swap : NULL);
    const tm_answer answer = subject_ask(&b->s, &r.c.operation);
    assert_int_equal(answer.level, TM_LEVEL_REFUSED);
    assert_int_equal(answer.reasons, TM_REASON_SIZE);
    assert_int_equal(answer.change_count, 1);
    const tm_change *change = &answer.changes[0];
    assert_int_equal(change->kind, TM_CHANGE_SPLIT_ABOVE);
    const tm_operand *operand = &r.c.operands[change->operand];
    assert_true(change->value > 0 && change->value * (operand->byte_count / operand->dims[change->axis]) <= 1048576);
  }
  assert_int_equal(b->s.table.buffer_create(b->s.device, 0, 1048577, &buffer), TM_ERROR_NO_MEMORY);
  assert_int_equal(b->s.table.buffer_create(b->s.device, 0, 1048576, &buffer), TM_OK);
  const tm_transfer beyond = { .struct_size = sizeof beyond, .destination = buffer, .destination_offset = 1048570, .host = &r, .bytes = 8 };
  tm_ticket ticket = { 0, 0, 0 };
  assert_int_equal(b->s.table.upload(b->s.device, &beyond, &ticket), TM_ERROR_ARGUMENT);
  b->s.table.buffer_destroy(b->s.device, 0, buffer, 1048576, 0);
}

/* ---- silicon ---- */

/* A driver for processors shares the host's cores until the user says that it was given others. */
static void cores_are_its_own_by_the_users_word(void **state) {
  static const tm_identity host_cores = TM_HOST_CORES;
  bench *b = *state;
  const int is_processor = memcmp(&b->s.info.resource, &host_cores, sizeof host_cores) == 0;
  if (!is_processor) assert_memory_equal(&b->s.info.resource, &b->s.info.uuid, sizeof host_cores);
  subject_close(&b->s);
  assert_int_equal(open_with(b, "own_cores=1"), TM_OK);
  assert_memory_equal(&b->s.info.resource, &b->s.info.uuid, sizeof host_cores);
}

/* ---- the program ---- */

static int load(bench *b) {
  const tm_log silent = { NULL, NULL };
  const tm_plugin_header *header = NULL;
  const char *plugin = getenv("TM_PLUGIN"), *faulty = getenv("TM_FAULTY");
  tm_error error = TM_ERROR_INIT;
  faulty_plan_fn find_plan = NULL;
  void *library = faulty != NULL ? dlopen(faulty, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (plugin == NULL || library == NULL) return 0;
  void *symbol = dlsym(library, "faulty_opencl_plan");
  memcpy(&find_plan, &symbol, sizeof symbol);
  b->faults = find_plan();
  snprintf(b->library, sizeof b->library, "library=%s", faulty);
  return tm_plugin_library_load(plugin, &silent, &header, &error) == TM_OK &&
         tm_plugin_table_accept(header, plugin, &b->table, &error) == TM_OK;
}

int main(void) {
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(long_rows_follow_the_canonical_order, start, stop),
    cmocka_unit_test_setup_teardown(large_tensors_have_exact_statistics, start, stop),
    cmocka_unit_test_setup_teardown(a_full_queue_is_busy_and_recovers, start, stop),
    cmocka_unit_test_setup_teardown(pending_is_said_only_after_the_timeout, start, stop),
    cmocka_unit_test_setup_teardown(queues_wait_for_each_other, start, stop),
    cmocka_unit_test_setup_teardown(a_failure_holds_until_cancel, start, stop),
    cmocka_unit_test_setup_teardown(a_kernel_that_dies_loses_the_device, start, stop),
    cmocka_unit_test_setup_teardown(lack_of_memory_enqueues_nothing, start, stop),
    cmocka_unit_test_setup_teardown(a_kernel_that_does_not_compile_is_not_claimed_again, start, stop),
    cmocka_unit_test_setup_teardown(the_host_keeps_compiled_programs, start, stop),
    cmocka_unit_test_setup_teardown(what_is_too_large_is_to_be_split, start, stop),
    cmocka_unit_test_setup_teardown(cores_are_its_own_by_the_users_word, start, stop),
  };
  if (!load(&the_bench)) {
    print_message("the plugin or the faulty loader cannot be loaded\n");
    return 1;
  }
  const tm_status status = open_with(&the_bench, NULL);
  if (status == TM_ERROR_NO_DEVICE && strstr(the_bench.s.text, "loader lacks") == NULL) {
    print_message("skipped: %s\n", the_bench.s.text);
    return SKIPPED;
  }
  if (status != TM_OK) {
    print_message("%s\n", the_bench.s.text);
    return 1;
  }
  subject_close(&the_bench.s);
  return cmocka_run_group_tests_name("opencl", tests, NULL, NULL);
}
