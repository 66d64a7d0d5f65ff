/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an application that embeds the library brings along: its allocator, its log, a memory limit, memory of its own as
 * operands, and a job that tells when it has ended and can be cancelled:  embed FILE
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <tensormorph/tensormorph.h>

#define MEMORY_LIMIT_BYTES (UINT64_C(256) << 20)
#define PATIENCE_NS UINT64_C(1000000000)
#define FOREVER UINT64_MAX

typedef struct heap {
  _Atomic uint64_t live_bytes;
} heap;

static void *heap_alloc(void *allocator_context, uint64_t bytes, uint64_t alignment) {
  heap *own = allocator_context;
  void *memory = aligned_alloc((size_t)alignment, (size_t)((bytes + alignment - 1) / alignment * alignment));
  if (memory != NULL) atomic_fetch_add(&own->live_bytes, bytes);
  return memory;
}

static void heap_free(void *allocator_context, void *memory, uint64_t bytes) {
  heap *own = allocator_context;
  atomic_fetch_sub(&own->live_bytes, bytes);
  free(memory);
}

static void write_log(void *log_context, uint32_t level, const char *message) {
  fprintf(log_context, "log %u: %s\n", level, message);
}

/* Doubles numbers where the application has them: every second one of an array. */
static tm_status double_in_place(tm_context *context, tm_error *error) {
  float numbers[8] = { 1, 0, 2, 0, 3, 0, 4, 0 }, doubled[4];
  const tm_operand every_second = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { 2 * sizeof(float) } };
  const tm_operand dense = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 } };
  tm_tensor *x = NULL, *y = NULL;
  tm_status status = tm_tensor_wrap(context, &every_second, numbers, sizeof numbers, &x, error);
  if (status == TM_OK) status = tm_tensor_wrap(context, &dense, doubled, sizeof doubled, &y, error);
  if (status == TM_OK) {
    tm_tensor *const both[] = { x, x };
    status = tm_run(context, TM_OP_ADD, NULL, 0, both, 2, &y, 1, NULL, error);
  }
  if (status == TM_OK) printf("%g %g %g %g\n", (double)doubled[0], (double)doubled[1], (double)doubled[2], (double)doubled[3]);
  tm_tensor_destroy(y);
  tm_tensor_destroy(x);
  return status;
}

/* On the job's own thread: an application would wake its event loop here. */
static void on_complete(void *complete_context, tm_job *job) {
  atomic_uint *ended = complete_context;
  (void)job;
  atomic_store(ended, 1);
}

/* A job that gets a second and is then asked to stop.  Being cancelled is an outcome here, no error. */
static tm_status run_job(tm_context *context, const char *path, tm_error *error) {
  atomic_uint ended = 0;
  tm_stats_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  options.complete = on_complete;
  options.complete_context = &ended;
  tm_checkpoint *checkpoint = NULL;
  tm_job *job = NULL;
  tm_status status = tm_checkpoint_open(context, path, 0, &checkpoint, error);
  if (status == TM_OK) status = tm_job_start_stats(context, &checkpoint, 1, &options, &job, error);
  if (status == TM_OK) status = tm_job_wait(job, PATIENCE_NS, error);
  if (status == TM_PENDING) {
    tm_job_cancel(job);
    status = tm_job_wait(job, FOREVER, error);
  }
  if (job != NULL) printf("%s: %" PRIu64 " tensors\n", tm_status_text(status), tm_job_row_count(job));
  tm_job_destroy(job);          /* joins the thread, so the callback has returned */
  if (job != NULL) printf("the callback was %s\n", atomic_load(&ended) != 0 ? "called" : "not called");
  tm_checkpoint_close(checkpoint);
  return status == TM_ERROR_CANCELLED ? TM_OK : status;
}

int main(int argument_count, char **arguments) {
  heap own = { 0 };
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = {
    .struct_size = sizeof options,
    .thread_count = 2,
    .max_memory_bytes = MEMORY_LIMIT_BYTES,
    .alloc = heap_alloc,
    .free = heap_free,
    .allocator_context = &own,
    .log = write_log,
    .log_context = stderr,
  };
  tm_context *context = NULL;
  tm_status status = tm_context_create(&options, &context, &error);
  if (status == TM_OK) status = double_in_place(context, &error);
  if (status == TM_OK && argument_count > 1) status = run_job(context, arguments[1], &error);
  if (status != TM_OK) fprintf(stderr, "%s: %s\n", tm_status_text(status), error.text);
  tm_context_destroy(context);
  printf("%" PRIu64 " bytes left\n", atomic_load(&own.live_bytes));
  return status == TM_OK && atomic_load(&own.live_bytes) == 0 ? 0 : 1;
}
