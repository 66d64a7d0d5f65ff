/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_interactive FILE [--plugin=PATH] [--threads=N] [--gigabytes=10] [--seconds=20]: operations as somebody at a keyboard wants
 * them, now and then, with nothing beside them and beside a job over a large checkpoint.  FILE is made for it, with holes
 * instead of bytes, and removed.  Prints median, 99th percentile and the longest of each operation.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#include "tensormorph/tensormorph.h"

#define MOST_SAMPLES 20000u
#define PAUSE_NS 5000000u
#define TENSOR_BYTES (UINT64_C(64) << 20)
#define TENSOR_ENTRY "%s\"t%" PRIu64 "\":{\"dtype\":\"F32\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}"
#define GOAL_MS 20.0

/* What is wanted: an operation of so many rows and columns. */
typedef struct wish {
  const char *name;
  uint32_t    op;
  uint64_t    rows;
  uint64_t    columns;
  tm_tensor  *operands[3];
  double      alone[MOST_SAMPLES];
  double      beside[MOST_SAMPLES];
  uint32_t    alone_count;
  uint32_t    beside_count;
} wish;

static wish wishes[] = {
  { .name = "add of 64 x 64", .op = TM_OP_ADD, .rows = 64, .columns = 64 },
  { .name = "add of 1024 x 1024", .op = TM_OP_ADD, .rows = 1024, .columns = 1024 },
  { .name = "matmul of 256 x 256", .op = TM_OP_MATMUL, .rows = 256, .columns = 256 },
};
#define WISHES (sizeof wishes / sizeof wishes[0])

/* ---- the checkpoint ---- */

static int write_header(FILE *file, uint64_t tensors) {
  const size_t room = 128 * (size_t)tensors + 64;
  char *text = calloc(1, room);
  if (text == NULL) return 0;
  size_t used = (size_t)snprintf(text, room, "{");
  for (uint64_t i = 0; i < tensors; i++)
    used += (size_t)snprintf(text + used, room - used, TENSOR_ENTRY, i == 0 ? "" : ",", i, TENSOR_BYTES / 4, i * TENSOR_BYTES,
                             (i + 1) * TENSOR_BYTES);
  used += (size_t)snprintf(text + used, room - used, "}");
  while (used % 8 != 0) text[used++] = ' ';
  const uint64_t header_bytes = used;
  const int whole = fwrite(&header_bytes, 8, 1, file) == 1 && fwrite(text, 1, used, file) == used && fflush(file) == 0 &&
                    ftruncate(fileno(file), (off_t)(8 + used + tensors * TENSOR_BYTES)) == 0;
  free(text);
  return whole;
}

static int make_file(const char *path, uint64_t gigabytes) {
  FILE *file = fopen(path, "wbx");
  if (file == NULL) return perror(path), 0;
  const int whole = write_header(file, gigabytes * 1000000000u / TENSOR_BYTES + 1);
  return fclose(file) == 0 && whole;
}

/* ---- operations ---- */

static int make_wish(tm_context *context, wish *w) {
  const uint64_t dims[] = { w->rows, w->columns };
  for (int i = 0; i < 3; i++) {
    if (tm_tensor_create(context, TM_FORMAT_F32, 2, dims, &w->operands[i], NULL) != TM_OK) return 0;
    memset(tm_tensor_data(w->operands[i]), 0, w->rows * w->columns * sizeof(float));
  }
  return 1;
}

static int run_wish(tm_context *context, wish *w, double *samples, uint32_t *inout_count) {
  const uint64_t begin = tm_now_ns();
  tm_error error = { .struct_size = sizeof error };
  if (tm_run(context, w->op, NULL, 0, w->operands, 2, &w->operands[2], 1, NULL, &error) != TM_OK)
    return fprintf(stderr, "%s\n", error.text), 0;
  if (*inout_count < MOST_SAMPLES) samples[(*inout_count)++] = (double)(tm_now_ns() - begin) / 1e6;
  return 1;
}

static int run_alone(tm_context *context) {
  const struct timespec pause = { .tv_nsec = PAUSE_NS / 5 };
  for (int i = 0; i < 300; i++)
    for (size_t k = 0; k < WISHES; k++) {
      if (!run_wish(context, &wishes[k], wishes[k].alone, &wishes[k].alone_count)) return 0;
      (void)nanosleep(&pause, NULL);
    }
  return 1;
}

static int run_beside(tm_context *context, tm_checkpoint *checkpoint, uint64_t end_ns, uint64_t *inout_bytes) {
  tm_job *job = NULL;
  tm_error error = { .struct_size = sizeof error };
  tm_progress progress = { .struct_size = sizeof progress };
  if (tm_job_start_stats(context, &checkpoint, 1, NULL, &job, &error) != TM_OK) return fprintf(stderr, "%s\n", error.text), 0;
  int whole = 1;
  for (size_t k = 0; whole && tm_now_ns() < end_ns && tm_job_wait(job, PAUSE_NS, NULL) == TM_PENDING; k = (k + 1) % WISHES)
    whole = run_wish(context, &wishes[k], wishes[k].beside, &wishes[k].beside_count);
  tm_job_cancel(job);
  const tm_status status = tm_job_wait(job, UINT64_MAX, &error);
  if (status != TM_OK && status != TM_ERROR_CANCELLED) whole = (fprintf(stderr, "%s\n", error.text), 0);
  tm_job_progress(job, &progress);
  *inout_bytes += progress.bytes_done;
  tm_job_destroy(job);
  return whole;
}

/* ---- figures ---- */

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void show(const char *name, const char *when, double *samples, uint32_t count, double goal_ms) {
  if (count == 0) return;
  qsort(samples, count, sizeof *samples, compare_doubles);
  printf("%-20s %-18s %6u times  median %8.3f ms  p99 %8.3f ms  most %8.3f ms", name, when, count, samples[count / 2],
         samples[(uint64_t)count * 99 / 100], samples[count - 1]);
  if (goal_ms > 0) printf("   goal: p99 %.0f at most", goal_ms);
  printf("\n");
}

static int bench(tm_context *context, tm_checkpoint *checkpoint, uint64_t seconds) {
  uint64_t bytes = 0;
  int whole = 1;
  for (size_t k = 0; k < WISHES; k++) whole = whole && make_wish(context, &wishes[k]);
  whole = whole && run_alone(context);
  const uint64_t begin = tm_now_ns(), end = begin + seconds * UINT64_C(1000000000);
  do whole = whole && run_beside(context, checkpoint, end, &bytes);
  while (whole && tm_now_ns() < end);
  printf("the job went through %.1f GB at %.2f GB/s\n", (double)bytes / 1e9, (double)bytes / (double)(tm_now_ns() - begin));
  for (size_t k = 0; k < WISHES; k++) {
    show(wishes[k].name, "by itself", wishes[k].alone, wishes[k].alone_count, 0);
    show("", "beside the job", wishes[k].beside, wishes[k].beside_count, GOAL_MS);
    for (int i = 0; i < 3; i++) tm_tensor_destroy(wishes[k].operands[i]);
  }
  return whole;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return fprintf(stderr, "usage: bench_interactive FILE [--plugin=PATH] [--threads=N] [--gigabytes=10] [--seconds=20]\n"), 2;
  const char *plugin = NULL;
  for (int i = 2; i < argc; i++)
    if (strncmp(argv[i], "--plugin=", 9) == 0) plugin = argv[i] + 9;
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_MAP_FILES,
                                       .thread_count = (uint32_t)bench_option(argc, argv, "threads", 0),
                                       .plugin_paths = &plugin, .plugin_path_count = plugin != NULL };
  tm_context *context = NULL;
  tm_checkpoint *checkpoint = NULL;
  if (!make_file(argv[1], bench_option(argc, argv, "gigabytes", 10))) return 1;
  tm_status status = tm_context_create(&options, &context, &error);
  if (status == TM_OK) status = tm_checkpoint_open(context, argv[1], 0, &checkpoint, &error);
  if (status != TM_OK) fprintf(stderr, "%s\n", error.text);
  const int whole = status == TM_OK && bench(context, checkpoint, bench_option(argc, argv, "seconds", 20));
  tm_checkpoint_close(checkpoint);
  tm_context_destroy(context);
  (void)remove(argv[1]);
  return whole ? 0 : 1;
}
