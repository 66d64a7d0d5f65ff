/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_checkpoint FILE [--rounds=9] [--threads=2] [--check=0]: the statistics job, or with --check=1 the check, over a warm,
 * mapped checkpoint through the public API, in turns with a plain read-sum of a mapping of the same file.  Prints medians and
 * what memory the job took beyond the mapping.  A check opens the file itself, so beside it the file is mapped anew for each sum.
 */
#define _DEFAULT_SOURCE 1
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

#include "tensormorph/tensormorph.h"

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

static const void *map_file(const char *path, uint64_t *out_bytes) {
  struct stat found;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &found) != 0) return NULL;
  void *data = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  *out_bytes = (uint64_t)found.st_size;
  return data == MAP_FAILED ? NULL : data;
}

/* What is measured. */
typedef struct subject {
  tm_context    *context;
  tm_checkpoint *checkpoint;
  const char    *path;
  bool           is_check;
} subject;

static int run_job(const subject *s) {
  tm_error error = { .struct_size = sizeof error };
  tm_checkpoint *checkpoint = s->checkpoint;
  tm_job *job = NULL;
  tm_status status = s->is_check ? tm_job_start_check(s->context, &s->path, 1, NULL, &job, &error)
                                 : tm_job_start_stats(s->context, &checkpoint, 1, NULL, &job, &error);
  if (status == TM_OK) status = tm_job_wait(job, UINT64_MAX, &error);
  tm_job_destroy(job);
  if (status != TM_OK) fprintf(stderr, "%s\n", error.text);
  return status == TM_OK;
}

/* As the job gets them: mapped for long, or just now. */
static uint64_t read_bytes(const subject *s, kernel_host *host, const void *data, uint64_t bytes) {
  if (!s->is_check) return bench_read_sum(host, data, bytes);
  const void *fresh = map_file(s->path, &bytes);
  const uint64_t sum = fresh == NULL ? 0 : bench_read_sum(host, fresh, bytes);
  if (fresh != NULL) munmap((void *)(uintptr_t)fresh, (size_t)bytes);
  return sum;
}

static int compare(const subject *s, kernel_host *host, const void *data, uint64_t bytes, uint32_t rounds) {
  double read_gbs[BENCH_MAX_ROUNDS], job_gbs[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
  uint64_t sink = read_bytes(s, host, data, bytes);
  const uint64_t before = anonymous_kilobytes();
  if (!run_job(s)) return 1;
  for (uint32_t r = 0; r < rounds; r++) {
    const uint64_t start = tm_now_ns();
    sink += read_bytes(s, host, data, bytes);
    const uint64_t middle = tm_now_ns();
    if (!run_job(s)) return 1;
    const uint64_t end = tm_now_ns();
    read_gbs[r] = (double)bytes / (double)(middle - start);
    job_gbs[r] = (double)bytes / (double)(end - middle);
    ratios[r] = job_gbs[r] / read_gbs[r];
  }
  const uint64_t after = anonymous_kilobytes();
  printf("%u threads  read %5.1f GB/s  %s %5.1f GB/s  %5.1f %% of read  %llu kB resident beyond the mapping (%llu more than before)%s\n",
         host->services.lane_count, bench_median(read_gbs, rounds), s->is_check ? "check" : "stats",
         bench_median(job_gbs, rounds), 100 * bench_median(ratios, rounds),
         (unsigned long long)after, (unsigned long long)(after > before ? after - before : 0), sink == 1 ? " " : "");
  return 0;
}

int main(int argc, char **argv) {
  const uint32_t rounds = (uint32_t)bench_option(argc, argv, "rounds", 9);
  const uint32_t threads = (uint32_t)bench_option(argc, argv, "threads", 2);
  uint64_t bytes = 0;
  if (argc < 2 || rounds > BENCH_MAX_ROUNDS) return 2;
  const void *data = map_file(argv[1], &bytes);
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_MAP_FILES, .thread_count = threads };
  tm_context *context = NULL;
  tm_checkpoint *checkpoint = NULL;
  kernel_host host;
  tm_status status = data == NULL ? TM_ERROR_IO : tm_context_create(&options, &context, &error);
  if (status == TM_OK) status = tm_checkpoint_open(context, argv[1], 0, &checkpoint, &error);
  if (status != TM_OK) {
    fprintf(stderr, "%s: %s\n", argv[1], error.text);
    return 1;
  }
  kernel_host_open(&host, bench_builtin("cpu"), "auto", threads, threads);
  const subject measured = { context, checkpoint, argv[1], bench_option(argc, argv, "check", 0) != 0 };
  const int result = compare(&measured, &host, data, bytes, rounds);
  kernel_host_close(&host);
  tm_checkpoint_close(checkpoint);
  tm_context_destroy(context);
  return result;
}
