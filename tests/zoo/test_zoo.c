/* SPDX-License-Identifier: Apache-2.0 */
/* The whole zoo loaded together: results stay those of the reference, what broke a promise is counted and reported. */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>

#include "formats/made_safetensors.h"
#include "formats/scratch.h"
#include "unit/plugin/plugin_case.h"
#include "zoo/every_operation.h"

typedef struct tracked_block {
  struct tracked_block *next;
  struct tracked_block *previous;
} tracked_block;

/* An allocator that frees what was left behind: an animal that leaks must not make the test leak. */
typedef struct tracker {
  tracked_block   head;
  pthread_mutex_t lock;
} tracker;

#define BLOCK_ROOM 4096u                /* in front of each block, so that any alignment up to a page is kept */

static void *tracked_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  tracker *all = context;
  (void)alignment;
  const uint64_t rounded = (bytes + 2 * BLOCK_ROOM - 1) / BLOCK_ROOM * BLOCK_ROOM;
  char *whole = aligned_alloc(BLOCK_ROOM, (size_t)(rounded + BLOCK_ROOM));
  if (whole == NULL) return NULL;
  tracked_block *block = (tracked_block *)(void *)whole;
  pthread_mutex_lock(&all->lock);
  *block = (tracked_block){ all->head.next, &all->head };
  if (block->next != NULL) block->next->previous = block;
  all->head.next = block;
  pthread_mutex_unlock(&all->lock);
  return whole + BLOCK_ROOM;
}

static void tracked_free(void *context, void *memory, uint64_t bytes) {
  tracker *all = context;
  (void)bytes;
  if (memory == NULL) return;
  tracked_block *block = (tracked_block *)(void *)((char *)memory - BLOCK_ROOM);
  pthread_mutex_lock(&all->lock);
  block->previous->next = block->next;
  if (block->next != NULL) block->next->previous = block->previous;
  pthread_mutex_unlock(&all->lock);
  free(block);
}

static void free_leaks(tracker *all) {
  while (all->head.next != NULL) {
    tracked_block *block = all->head.next;
    all->head.next = block->next;
    free(block);
  }
}

typedef struct zoo_case {
  tracker     memory;
  tm_context *zoo;
  tm_context *reference;
} zoo_case;

static int open_zoo(void **state) {
  static zoo_case c = { .memory = { .lock = PTHREAD_MUTEX_INITIALIZER } };
  static const char *const only_reference[] = { "reference" };
  tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_LOAD_PLUGINS, .thread_count = 3,
                                 .alloc = tracked_alloc, .free = tracked_free, .allocator_context = &c.memory };
  assert_int_equal(setenv("TENSORMORPH_PLUGIN_PATH", ZOO_FOLDER, 1), 0);
  c.zoo = open_context(&options);
  assert_int_equal(unsetenv("TENSORMORPH_PLUGIN_PATH"), 0);
  options = (tm_context_options){ .struct_size = sizeof options, .devices = only_reference, .device_count = 1 };
  c.reference = open_context(&options);
  *state = &c;
  return 0;
}

static int close_zoo(void **state) {
  zoo_case *c = *state;
  tm_context_destroy(c->zoo);
  tm_context_destroy(c->reference);
  free_leaks(&c->memory);
  return 0;
}

static void everybody_is_listed(void **state) {
  const zoo_case *c = *state;
  static const char *const ready[] = { ZOO("liar"), ZOO("wrong"), "zoo_slow", "zoo_lost", "zoo_busy", "zoo_leaker",
                                       "zoo_answers", "zoo_two_queues", "zoo_out_of_memory", "zoo_float_mode" };
  for (size_t i = 0; i < sizeof ready / sizeof ready[0]; i++) expect_state(c->zoo, ready[i], TM_BACKEND_READY, "");
  expect_state(c->zoo, ZOO("constructor_hangs"), TM_BACKEND_REFUSED, "did not end");
  expect_state(c->zoo, ZOO("query_aborts"), TM_BACKEND_REFUSED, "signal");
}

/* ---- operations against the reference ---- */

typedef struct example {
  uint32_t    op;
  uint32_t    attribute_bytes;
  const void *attributes;
  uint32_t    input_count;
  uint32_t    format;
  uint32_t    rank;
  uint64_t    dims[3];
  uint32_t    output_format;
} example;

/* Without this bit in every second byte no f32, f16 or bf16 is a NaN; which payload a sum keeps is nobody's promise. */
#define NAN_BIT 0x40

static tm_tensor *filled(tm_context *context, uint32_t format, uint32_t rank, const uint64_t *dims, uint64_t seed) {
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(context, format, rank, dims, &tensor, NULL), TM_OK);
  unsigned char *bytes = tm_tensor_data(tensor);
  for (uint64_t i = 0; i < tm_tensor_operand(tensor)->byte_count; i++) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    bytes[i] = (unsigned char)(seed >> 56);
    if (i % 2 == 1) bytes[i] &= (unsigned char)~NAN_BIT;
  }
  return tensor;
}

/* Runs the example and returns the output for the caller to destroy. */
static tm_tensor *run_example(tm_context *context, const example *e, uint64_t seed, tm_run_report *report) {
  tm_tensor *inputs[3] = { NULL, NULL, NULL };
  tm_operand layouts[3];
  for (uint32_t i = 0; i < e->input_count; i++) {
    inputs[i] = filled(context, e->format, e->rank, e->dims, seed + i);
    layouts[i] = *tm_tensor_operand(inputs[i]);
  }
  tm_error error = TM_ERROR_INIT;
  tm_operand wanted = { .format = e->output_format };
  if (tm_op_infer(e->op, e->attributes, e->attribute_bytes, layouts, e->input_count, &wanted, 1, &error) != TM_OK)
    fail_msg("%s", error.text);
  tm_tensor *output = filled(context, wanted.format, wanted.rank, wanted.dims, 5);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .report = report };
  if (tm_run(context, e->op, e->attributes, e->attribute_bytes, inputs, e->input_count, &output, 1, &options, &error) != TM_OK)
    fail_msg("operation %u: %s", e->op, error.text);
  for (uint32_t i = 0; i < e->input_count; i++) tm_tensor_destroy(inputs[i]);
  return output;
}

static const tm_matmul_attributes plain_product = { 0, 0 };
static const tm_reduce_attributes over_rows = { 1, 0 };
static const tm_cast_attributes plain_cast = { 0, 0 };
static const tm_axis_attributes last_axis = { 1, 0 };

static const example examples[] = {
  { TM_OP_NEG, 0, NULL, 1, TM_FORMAT_F32, 2, { 31, 17 }, TM_FORMAT_NONE },
  { TM_OP_ADD, 0, NULL, 2, TM_FORMAT_F32, 2, { 31, 17 }, TM_FORMAT_NONE },
  { TM_OP_ADD, 0, NULL, 2, TM_FORMAT_BF16, 2, { 31, 17 }, TM_FORMAT_NONE },
  { TM_OP_COPY, 0, NULL, 1, TM_FORMAT_U8, 1, { 1001 }, TM_FORMAT_NONE },
  { TM_OP_MATMUL, sizeof plain_product, &plain_product, 2, TM_FORMAT_F32, 2, { 24, 24 }, TM_FORMAT_NONE },
  { TM_OP_SUM, sizeof over_rows, &over_rows, 1, TM_FORMAT_F16, 2, { 20, 33 }, TM_FORMAT_NONE },
  { TM_OP_CAST, sizeof plain_cast, &plain_cast, 1, TM_FORMAT_F32, 1, { 700 }, TM_FORMAT_BF16 },
  { TM_OP_SOFTMAX, sizeof last_axis, &last_axis, 1, TM_FORMAT_F32, 2, { 9, 65 }, TM_FORMAT_NONE },
  { TM_OP_STATS, 0, NULL, 1, TM_FORMAT_F32, 1, { 5000 }, TM_FORMAT_NONE },
  { TM_OP_DEQUANTIZE, 0, NULL, 1, TM_FORMAT_Q8_0, 2, { 4, 64 }, TM_FORMAT_NONE },
};
#define EXAMPLES (sizeof examples / sizeof examples[0])

static void results_are_those_of_the_reference(void **state) {
  const zoo_case *c = *state;
  uint32_t fell_back = 0;
  device_name name;
  for (uint64_t round = 0; round < 12; round++) {
    for (size_t i = 0; i < EXAMPLES; i++) {
      tm_run_report report = { .struct_size = sizeof report };
      tm_tensor *got = run_example(c->zoo, &examples[i], round, &report);
      tm_tensor *expected = run_example(c->reference, &examples[i], round, NULL);
      assert_memory_equal(tm_tensor_data(got), tm_tensor_data(expected), (size_t)tm_tensor_operand(expected)->byte_count);
      fell_back += report.fell_back;
      assert_true(report.fell_back == 0 || report.retries > 0);
      tm_tensor_destroy(got);
      tm_tensor_destroy(expected);
      assert_int_equal(fegetround(), FE_TONEAREST);
    }
  }
  assert_true(fell_back > 0);
  const tm_device_description liar = describe_device(c->zoo, device_name_of(c->zoo, ZOO("liar"), &name));
  assert_true(liar.violation_count >= 4);
  assert_int_equal(liar.state, TM_DEVICE_QUARANTINED);
  assert_int_equal(describe_device(c->zoo, device_name_of(c->zoo, ZOO("wrong"), &name)).launch_count, 0);
}

/* Four times: the first three runs of a kind are watched, the later ones are not. */
static void every_operation_gives_what_the_reference_gives(void **state) {
  const zoo_case *c = *state;
  for (int round = 0; round < 4; round++) every_operation_agrees(c->zoo, c->reference);
  assert_int_equal(fegetround(), FE_TONEAREST);
}

/* A device that is asked for by name gets its chance, and its failure is the caller's answer. */
static void a_moody_device_fails_with_its_reason(void **state) {
  const zoo_case *c = *state;
  tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  tm_error error = TM_ERROR_INIT;
  options.device_plus_one = device_of(c->zoo, "zoo_out_of_memory:0") + 1;
  assert_int_equal(run_checked(c->zoo, TM_OP_NEG, &options, &error), TM_ERROR_NO_MEMORY);
  assert_non_null(strstr(error.text, "no memory for another kernel"));
  assert_int_equal(describe_device(c->zoo, "zoo_out_of_memory:0").violation_count, 0);

  const uint32_t lost = device_of(c->zoo, "zoo_lost:0");
  options.device_plus_one = lost + 1;
  tm_status status = TM_OK;
  for (int i = 0; i < 5 && status == TM_OK; i++) status = run_checked(c->zoo, TM_OP_NEG, &options, &error);
  assert_int_equal(status, TM_ERROR_NO_DEVICE);
  assert_int_equal(describe_device(c->zoo, "zoo_lost:0").state, TM_DEVICE_LOST);
  assert_int_equal(describe_device(c->zoo, "zoo_lost:0").violation_count, 0);

  assert_int_equal(run_on(c->zoo, TM_OP_ADD, device_of(c->zoo, "zoo_busy:0")).fell_back, 0);
  assert_int_equal(run_on(c->zoo, TM_OP_ADD, TM_ANY_DEVICE).retries < 300, 1);
}

/* Nobody knows when its work will end: it is not asked again, and what it may still write is not freed under it. */
static void an_unfinished_device_is_given_up(void **state) {
  const zoo_case *c = *state;
  static const char *const names[] = { "zoo_impatient:0", "zoo_ticketless:0" };
  for (size_t i = 0; i < 2; i++) {
    tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
    tm_error error = TM_ERROR_INIT;
    options.device_plus_one = device_of(c->zoo, names[i]) + 1;
    assert_int_equal(run_checked(c->zoo, TM_OP_COPY, &options, &error), TM_ERROR_NO_DEVICE);
    assert_int_equal(describe_device(c->zoo, names[i]).state, TM_DEVICE_QUARANTINED);
    assert_int_equal(describe_device(c->zoo, names[i]).launch_count, 1);
  }
}

static void rounding_stays_to_nearest_in_all_threads(void **state) {
  const zoo_case *c = *state;
  for (int i = 0; i < 5; i++) (void)run_on(c->zoo, TM_OP_NEG, device_of(c->zoo, "zoo_float_mode:0"));
  assert_int_equal(fegetround(), FE_TONEAREST);
  const example wide = { TM_OP_ADD, 0, NULL, 2, TM_FORMAT_F32, 1, { 300000 }, TM_FORMAT_NONE };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0,
                                   .device_plus_one = device_of(c->zoo, "reference:0") + 1 };
  tm_tensor *a = filled(c->zoo, wide.format, wide.rank, wide.dims, 1), *b = filled(c->zoo, wide.format, wide.rank, wide.dims, 2);
  tm_tensor *y = filled(c->zoo, wide.format, wide.rank, wide.dims, 3);
  tm_tensor *inputs[] = { a, b };
  assert_int_equal(tm_run(c->zoo, wide.op, NULL, 0, inputs, 2, &y, 1, &options, NULL), TM_OK);
  tm_tensor *expected = run_example(c->reference, &wide, 1, NULL);
  assert_memory_equal(tm_tensor_data(y), tm_tensor_data(expected), (size_t)(wide.dims[0] * sizeof(float)));
  tm_tensor_destroy(expected);
  tm_tensor_destroy(y);
  tm_tensor_destroy(b);
  tm_tensor_destroy(a);
}

/* ---- memory of its own ---- */

/* A reversed view begins where its last byte lies: the device wants its first element on its granule all the same. */
static void far_memory_takes_any_layout(void **state) {
  const zoo_case *c = *state;
  enum { COUNT = 301 };
  const uint64_t count = COUNT;
  tm_tensor *whole = filled(c->zoo, TM_FORMAT_U8, 1, &count, 9);
  tm_operand layout = { .format = TM_FORMAT_U8, .rank = 1, .dims = { COUNT }, .strides_bytes = { -1 } };
  tm_tensor *reversed = NULL;
  assert_int_equal(tm_tensor_view(whole, &layout, COUNT - 1, &reversed, NULL), TM_OK);
  unsigned char bytes[COUNT + 8];
  memset(bytes, 0xee, sizeof bytes);
  layout.strides_bytes[0] = 1;
  tm_tensor *output = NULL;
  assert_int_equal(tm_tensor_wrap(c->zoo, &layout, bytes + 1, COUNT, &output, NULL), TM_OK);
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .report = &report,
                                   .device_plus_one = device_of(c->zoo, "zoo_two_queues:0") + 1 };
  tm_error error = TM_ERROR_INIT;
  if (tm_run(c->zoo, TM_OP_COPY, NULL, 0, &reversed, 1, &output, 1, &options, &error) != TM_OK) fail_msg("%s", error.text);
  const unsigned char *from = tm_tensor_data(whole);
  for (int i = 0; i < COUNT; i++) assert_int_equal(bytes[1 + i], from[COUNT - 1 - i]);
  assert_int_equal(bytes[0], 0xee);
  for (int i = COUNT + 1; i < COUNT + 8; i++) assert_int_equal(bytes[i], 0xee);
  tm_tensor_destroy(output);
  tm_tensor_destroy(reversed);
  tm_tensor_destroy(whole);
}

/* ---- a job ---- */

static const char header[] =
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[50,40],\"data_offsets\":[0,8000]},"
    "\"b\":{\"dtype\":\"BF16\",\"shape\":[3000],\"data_offsets\":[8000,14000]},"
    "\"c\":{\"dtype\":\"I16\",\"shape\":[100],\"data_offsets\":[14000,14200]},"
    "\"d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[14200,14200]}}";

static tm_job *run_stats(tm_context *context, const char *path, tm_checkpoint **out_checkpoint) {
  tm_error error = TM_ERROR_INIT;
  tm_job *job = NULL;
  if (tm_checkpoint_open(context, path, 0, out_checkpoint, &error) != TM_OK) fail_msg("%s", error.text);
  if (tm_job_start_stats(context, out_checkpoint, 1, NULL, &job, &error) != TM_OK) fail_msg("%s", error.text);
  if (tm_job_wait(job, UINT64_MAX, &error) != TM_OK) fail_msg("%s", error.text);
  return job;
}

static void expect_same_rows(const tm_job *a, const tm_job *b) {
  uint32_t columns = 0;
  (void)tm_job_columns(a, &columns);
  assert_int_equal(tm_job_row_count(a), 4);
  assert_int_equal(tm_job_row_count(b), 4);
  for (uint64_t row = 0; row < 4; row++) {
    tm_cell x[32], y[32];
    assert_true(columns <= 32);
    assert_int_equal(tm_job_row(a, row, x), TM_OK);
    assert_int_equal(tm_job_row(b, row, y), TM_OK);
    for (uint32_t i = 0; i < columns; i++) {
      assert_int_equal(x[i].defined, y[i].defined);
      assert_int_equal(x[i].count, y[i].count);
      if (x[i].type == TM_COLUMN_NUMBER && x[i].defined) assert_memory_equal(&x[i].number, &y[i].number, sizeof(double));
    }
  }
}

static bool has_note_about(const tm_job *job, const char *who) {
  const char *note = NULL;
  for (uint32_t i = 0; tm_job_note(job, i, &note) == TM_OK; i++)
    if (strstr(note, who) != NULL) return true;
  return false;
}

static void a_job_falls_back_and_says_so(void **state) {
  const zoo_case *c = *state;
  scratch folder;
  assert_true(scratch_init(&folder));
  made_file made = make_safetensors(header, sizeof header - 1, 14200);
  const char *path = scratch_write(&folder, "model.safetensors", made.bytes, made.size);
  free(made.bytes);
  assert_non_null(path);
  const char *paths[] = { ZOO("liar") };
  device_name name;
  const tm_context_options options = options_with(paths, 1);
  tm_context *fresh = open_context(&options);
  tm_checkpoint *files[3];
  tm_job *with_liar = run_stats(fresh, path, &files[0]);
  tm_job *in_zoo = run_stats(c->zoo, path, &files[1]);
  tm_job *expected = run_stats(c->reference, path, &files[2]);
  expect_same_rows(with_liar, expected);
  expect_same_rows(in_zoo, expected);
  assert_true(has_note_about(with_liar, device_name_of(fresh, paths[0], &name)));
  assert_true(has_note_about(with_liar, "the dog ate it"));
  assert_false(has_note_about(expected, "zoo"));
  tm_job_destroy(with_liar);
  tm_job_destroy(in_zoo);
  tm_job_destroy(expected);
  for (int i = 0; i < 3; i++) tm_checkpoint_close(files[i]);
  tm_context_destroy(fresh);
  scratch_deinit(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(everybody_is_listed),
    cmocka_unit_test(results_are_those_of_the_reference),
    cmocka_unit_test(every_operation_gives_what_the_reference_gives),
    cmocka_unit_test(a_moody_device_fails_with_its_reason),
    cmocka_unit_test(an_unfinished_device_is_given_up),
    cmocka_unit_test(rounding_stays_to_nearest_in_all_threads),
    cmocka_unit_test(far_memory_takes_any_layout),
    cmocka_unit_test(a_job_falls_back_and_says_so),
  };
  return cmocka_run_group_tests(tests, open_zoo, close_zoo);
}
