/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads on one context at once: runs of one and of many signatures, explanations, jobs, descriptions. */
#define _GNU_SOURCE
#include "api_case.h"

#include <pthread.h>

#include "api/context.h"

#define THREADS 8
#define ROUNDS 60
#define FOREVER UINT64_MAX

typedef struct shared {
  tm_context    *context;
  tm_checkpoint *checkpoint;
  tm_tensor     *x;             /* f32 [32,32], read by all */
  _Atomic uint32_t failures;
  _Atomic uint32_t ended;
} shared;

typedef struct worker {
  shared   *all;
  uint32_t  number;
} worker;

static void expect(shared *all, bool true_fact) {
  if (!true_fact) atomic_fetch_add(&all->failures, 1);
}

static tm_tensor *create(shared *all, uint32_t format, uint64_t rows, uint64_t columns) {
  const uint64_t dims[] = { rows, columns };
  tm_tensor *tensor = NULL;
  expect(all, tm_tensor_create(all->context, format, 2, dims, &tensor, NULL) == TM_OK);
  return tensor;
}

/* The same signature in every thread. */
static void run_same(const worker *me, uint32_t round) {
  (void)round;
  tm_tensor *y = create(me->all, TM_FORMAT_F32, 32, 32);
  tm_tensor *const inputs[] = { me->all->x, me->all->x };
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  expect(me->all, tm_run(me->all->context, TM_OP_ADD, NULL, 0, inputs, 2, &y, 1, &options, NULL) == TM_OK);
  const float *sums = tm_tensor_data(y), *x = tm_tensor_data(me->all->x);
  for (int i = 0; i < 1024; i++) expect(me->all, sums[i] == x[i] + x[i]);
  tm_tensor_destroy(y);
}

/* A signature of its own in each round, some of them shared with other threads. */
static void run_different(const worker *me, uint32_t round) {
  const uint64_t rows = 1 + (me->number + round) % 16;
  tm_tensor *x = create(me->all, TM_FORMAT_F32, rows, 40), *y = create(me->all, TM_FORMAT_F32, rows, 40);
  for (uint64_t i = 0; i < rows * 40; i++) ((float *)tm_tensor_data(x))[i] = (float)i;
  expect(me->all, tm_run(me->all->context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, NULL, NULL) == TM_OK);
  for (uint64_t i = 0; i < rows * 40; i++) expect(me->all, ((const float *)tm_tensor_data(y))[i] == -(float)i);
  tm_tensor_destroy(x);
  tm_tensor_destroy(y);
}

static void run_matmul(const worker *me, uint32_t round) {
  (void)round;
  tm_tensor *y = create(me->all, TM_FORMAT_F32, 32, 32);
  tm_tensor *const inputs[] = { me->all->x, me->all->x };
  expect(me->all, tm_run(me->all->context, TM_OP_MATMUL, NULL, 0, inputs, 2, &y, 1, NULL, NULL) == TM_OK);
  tm_tensor_destroy(y);
}

static void explain(const worker *me, uint32_t round) {
  const tm_operand input = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 8, 1 + round } }, output = { .format = TM_FORMAT_NONE };
  tm_explanation *explanation = NULL;
  expect(me->all, tm_explain(me->all->context, TM_OP_EXP, NULL, 0, &input, 1, &output, 1, NULL, &explanation, NULL) == TM_OK);
  tm_candidate candidate = { .struct_size = sizeof candidate };
  expect(me->all, tm_explanation_candidate(explanation, 0, &candidate) == TM_OK && candidate.verdict == TM_VERDICT_CHOSEN);
  tm_explanation_destroy(explanation);
}

static void run_job(const worker *me, uint32_t round) {
  tm_job *job = NULL;
  expect(me->all, tm_job_start_stats(me->all->context, &me->all->checkpoint, 1, NULL, &job, NULL) == TM_OK);
  if (job == NULL) return;
  tm_cell cells[32];
  tm_progress progress = { .struct_size = sizeof progress };
  tm_device_usage usage = { .struct_size = sizeof usage };
  const char *note = NULL;
  (void)tm_job_row(job, 0, cells);
  tm_job_progress(job, &progress);
  (void)tm_job_device_usage(job, 0, &usage);
  (void)tm_job_note(job, 0, &note);
  if (round % 3 == 0) {
    tm_job_cancel(job);
  } else {
    expect(me->all, tm_job_wait(job, FOREVER, NULL) == TM_OK);
    expect(me->all, tm_job_row(job, 1, cells) == TM_OK);
  }
  tm_job_destroy(job);
}

static void describe(const worker *me, uint32_t round) {
  (void)round;
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_device_description device = { .struct_size = sizeof device };
  tm_support support = { .struct_size = sizeof support };
  tm_memory_usage memory = { .struct_size = sizeof memory };
  tm_metadata_description metadata = { .struct_size = sizeof metadata };
  for (uint32_t i = 0; tm_backend_describe(me->all->context, i, &backend) == TM_OK; i++) expect(me->all, backend.name != NULL);
  for (uint32_t i = 0; tm_device_describe(me->all->context, i, &device) == TM_OK; i++)
    (void)tm_support_query(me->all->context, i, TM_OP_ADD, TM_FORMAT_F32, &support);
  tm_context_memory_usage(me->all->context, &memory);
  expect(me->all, tm_checkpoint_metadata(me->all->checkpoint, 0, &metadata) == TM_OK && metadata.value_length == 6);
  unsigned char byte = 0;
  expect(me->all, tm_checkpoint_read(me->all->checkpoint, 0, 7, &byte, 1, NULL) == TM_OK && byte == 7);
}

typedef void (*activity_fn)(const worker *me, uint32_t round);
static const activity_fn activities[] = { run_same, run_different, run_same, run_matmul, explain, run_job, run_different, describe };
#define ACTIVITIES (sizeof activities / sizeof activities[0])

static void *work(void *argument) {
  const worker *me = argument;
  for (uint32_t round = 0; round < ROUNDS; round++) activities[(me->number + round) % ACTIVITIES](me, round);
  return NULL;
}

/* Takes away what is kept for speed, again and again, as when memory is short. */
static void *take_away(void *argument) {
  shared *all = argument;
  while (atomic_load(&all->ended) == 0) tm_memory_reclaim(&all->context->memory);
  return NULL;
}

static void run_threads(uint32_t thread_count, bool with_shortage) {
  scratch files;
  shared all = { 0 };
  counting_heap heap = { 0 };
  assert_true(scratch_init(&files));
  const char *path = write_checkpoint(&files, "two.safetensors", TWO_TENSORS, TWO_TENSORS_BYTES, 0);
  tm_context_options options = options_with(&heap);
  options.thread_count = thread_count;
  assert_int_equal(tm_context_create(&options, &all.context, NULL), TM_OK);
  assert_int_equal(tm_checkpoint_open(all.context, path, 0, &all.checkpoint, NULL), TM_OK);
  all.x = create(&all, TM_FORMAT_F32, 32, 32);
  for (int i = 0; i < 1024; i++) ((float *)tm_tensor_data(all.x))[i] = (float)(i % 5);
  pthread_t threads[THREADS], taker;
  if (with_shortage) assert_int_equal(pthread_create(&taker, NULL, take_away, &all), 0);
  worker workers[THREADS];
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){ &all, i };
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (uint32_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  atomic_store(&all.ended, 1);
  if (with_shortage) pthread_join(taker, NULL);
  assert_int_equal(atomic_load(&all.failures), 0);
  tm_tensor_destroy(all.x);
  tm_checkpoint_close(all.checkpoint);
  tm_context_destroy(all.context);
  heap_is_empty(&heap);
  scratch_deinit(&files);
}

static void all_at_once_over_several_lanes(void **state) {
  (void)state;
  run_threads(3, false);
}

static void all_at_once_over_one_lane(void **state) {
  (void)state;
  run_threads(1, false);
}

static void all_at_once_while_memory_is_short(void **state) {
  (void)state;
  run_threads(2, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_at_once_over_several_lanes),
    cmocka_unit_test(all_at_once_over_one_lane),
    cmocka_unit_test(all_at_once_while_memory_is_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
