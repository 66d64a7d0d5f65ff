/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_merge A B OUT [--rounds=5] [--threads=2] [--max-memory=0]: merge --linear of two warm checkpoints of equal tensors, half
 * and half, through the public API, in turns with a plain copy of A to OUT by the system's calls, brought to the disk likewise.
 * Prints medians of both, by the bytes written (a merge reads twice as many), the most anonymous memory that the merge took, and
 * the time to its first row.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

#include "tensormorph/tensormorph.h"

#define PIECE_BYTES (UINT64_C(4) << 20)
#define POLL_NS     UINT64_C(2000000)

static uint64_t anonymous_kilobytes(void) {
  char line[256];
  uint64_t kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "RssAnon:", 8) == 0) kilobytes = strtoull(line + 8, NULL, 10);
  fclose(file);
  return kilobytes;
}

typedef struct subject {
  tm_context *context;
  tm_checkpoint *models[2];
  const char *output;
  uint64_t    base_kilobytes;   /* what was there before the first merge: memory that one leaves behind counts, too */
} subject;

typedef struct result {
  uint64_t written_bytes;
  double   seconds;
  double   first_row_seconds;
  uint64_t peak_kilobytes;
} result;

static uint64_t size_of(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 ? (uint64_t)found.st_size : 0;
}

/* Until it has ended; what it takes meanwhile is looked at again and again. */
static tm_status watch(const subject *s, tm_job *job, uint64_t start_ns, result *out, tm_error *error) {
  tm_status status;
  while ((status = tm_job_wait(job, POLL_NS, error)) == TM_PENDING) {
    const uint64_t now = anonymous_kilobytes();
    if (now > s->base_kilobytes && now - s->base_kilobytes > out->peak_kilobytes) out->peak_kilobytes = now - s->base_kilobytes;
    if (out->first_row_seconds <= 0 && tm_job_row_count(job) > 0) out->first_row_seconds = (double)(tm_now_ns() - start_ns) / 1e9;
  }
  return status;
}

static int merge(const subject *s, result *out) {
  const tm_merge_options options = {
    .struct_size = sizeof options, .method = TM_MERGE_LINEAR, .models = s->models, .model_count = 2 };
  tm_error error = { .struct_size = sizeof error };
  tm_merge_plan *plan = NULL;
  tm_job *job = NULL;
  *out = (result){ 0 };
  const uint64_t start_ns = tm_now_ns();
  tm_status status = tm_merge_plan_create(s->context, &options, s->output, &plan, &error);
  if (status == TM_OK) status = tm_job_start_merge(plan, NULL, &job, &error);
  if (status == TM_OK) status = watch(s, job, start_ns, out, &error);
  out->seconds = (double)(tm_now_ns() - start_ns) / 1e9;
  tm_job_destroy(job);
  tm_merge_plan_destroy(plan);
  out->written_bytes = size_of(s->output);
  if (status != TM_OK) fprintf(stderr, "%s\n", error.text);
  return status == TM_OK;
}

static int copy_all(int from, int to, void *piece) {
  for (;;) {
    const ssize_t got = read(from, piece, PIECE_BYTES);
    if (got == 0) return fsync(to) == 0;
    if (got < 0 || write(to, piece, (size_t)got) != got) return 0;
  }
}

/* To a file of its own that takes the place of the result, as the merge's does. */
static int copy(const char *from_path, const char *to_path, void *piece) {
  char part[4096];
  snprintf(part, sizeof part, "%.4000s.copy", to_path);
  const int from = open(from_path, O_RDONLY | O_CLOEXEC), to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const int ok = from >= 0 && to >= 0 && copy_all(from, to, piece) && rename(part, to_path) == 0;
  close(from);
  close(to);
  if (!ok) perror(to_path);
  return ok;
}

static int compare(const subject *s, const char *first, uint32_t rounds, void *piece) {
  double copy_gbs[BENCH_MAX_ROUNDS], merge_gbs[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS], rows[BENCH_MAX_ROUNDS];
  uint64_t peak = 0;
  result r;
  if (!copy(first, s->output, piece) || !merge(s, &r)) return 1;
  for (uint32_t i = 0; i < rounds; i++) {
    const uint64_t start = tm_now_ns();
    if (!copy(first, s->output, piece)) return 1;
    copy_gbs[i] = (double)size_of(first) / (double)(tm_now_ns() - start);
    if (!merge(s, &r)) return 1;
    merge_gbs[i] = (double)r.written_bytes / r.seconds / 1e9;
    ratios[i] = merge_gbs[i] / copy_gbs[i];
    rows[i] = r.first_row_seconds > 0 ? r.first_row_seconds : r.seconds;
    if (r.peak_kilobytes > peak) peak = r.peak_kilobytes;
  }
  printf("copy %5.2f GB/s  merge %5.2f GB/s written (%5.2f read)  %5.1f %% of a copy  first row after %.0f ms  at most %llu kB of "
         "memory\n",
         bench_median(copy_gbs, rounds), bench_median(merge_gbs, rounds), 2 * bench_median(merge_gbs, rounds),
         100 * bench_median(ratios, rounds), 1e3 * bench_median(rows, rounds), (unsigned long long)peak);
  return 0;
}

int main(int argc, char **argv) {
  const uint32_t rounds = (uint32_t)bench_option(argc, argv, "rounds", 5);
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = { .struct_size = sizeof options,
                                       .flags = TM_CONTEXT_MAP_FILES | TM_CONTEXT_REPRODUCIBLE,
                                       .thread_count = (uint32_t)bench_option(argc, argv, "threads", 2),
                                       .max_memory_bytes = bench_option(argc, argv, "max-memory", 0) };
  subject s = { 0 };
  if (argc < 4 || rounds == 0 || rounds > BENCH_MAX_ROUNDS) return 2;
  s.output = argv[3];
  tm_status status = tm_context_create(&options, &s.context, &error);
  for (int i = 0; i < 2 && status == TM_OK; i++) status = tm_checkpoint_open(s.context, argv[1 + i], 0, &s.models[i], &error);
  void *piece = malloc(PIECE_BYTES);
  s.base_kilobytes = anonymous_kilobytes();
  if (status != TM_OK) fprintf(stderr, "%s\n", error.text);
  const int code = status != TM_OK || piece == NULL ? 1 : compare(&s, argv[1], rounds, piece);
  free(piece);
  for (int i = 0; i < 2; i++) tm_checkpoint_close(s.models[i]);
  tm_context_destroy(s.context);
  unlink(argv[3]);
  return code;
}
