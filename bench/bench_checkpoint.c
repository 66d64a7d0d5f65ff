/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_checkpoint FILE [OTHER] [--rounds=9] [--threads=2] [--check=0]: the statistics job, with --check=1 the check, or with OTHER
 * the comparison with that, over warm, mapped checkpoints through the public API, in turns with a plain read-sum of mappings of the
 * same files.  Prints medians and what memory the job took beyond the mappings.  A check opens the file itself, so beside it the
 * file is mapped anew for each sum.  Of a comparison one more run tells when the first row was there, and the most memory at any
 * moment.
 */
#define _DEFAULT_SOURCE 1
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
  tm_checkpoint *checkpoints[2];
  const char    *paths[2];
  const void    *data[2];
  uint64_t       bytes[2];
  uint32_t       count;         /* of files */
  bool           is_check;
} subject;

static const char *word_of(const subject *s) {
  if (s->count == 2) return "diff";
  return s->is_check ? "check" : "stats";
}

static tm_status start_job(const subject *s, tm_job **out_job, tm_error *error) {
  tm_checkpoint *checkpoint = s->checkpoints[0];
  if (s->count == 2) return tm_job_start_diff(s->context, checkpoint, s->checkpoints[1], NULL, out_job, error);
  if (s->is_check) return tm_job_start_check(s->context, s->paths, 1, NULL, out_job, error);
  return tm_job_start_stats(s->context, &checkpoint, 1, NULL, out_job, error);
}

static int run_job(const subject *s) {
  tm_error error = { .struct_size = sizeof error };
  tm_job *job = NULL;
  tm_status status = start_job(s, &job, &error);
  if (status == TM_OK) status = tm_job_wait(job, UINT64_MAX, &error);
  tm_job_destroy(job);
  if (status != TM_OK) fprintf(stderr, "%s\n", error.text);
  return status == TM_OK;
}

/* Not one of the timed runs: looking costs time. */
static void watch_job(const subject *s) {
  const uint64_t start = tm_now_ns(), look_ns = 200000;
  uint64_t first_ns = 0, most_kilobytes = 0;
  struct rusage usage;
  tm_job *job = NULL;
  if (start_job(s, &job, NULL) != TM_OK) return;
  while (tm_job_wait(job, look_ns, NULL) == TM_PENDING) {
    const uint64_t kilobytes = anonymous_kilobytes();
    if (first_ns == 0 && tm_job_row_count(job) > 0) first_ns = tm_now_ns() - start;
    if (kilobytes > most_kilobytes) most_kilobytes = kilobytes;
  }
  if (first_ns == 0) first_ns = tm_now_ns() - start;
  tm_job_destroy(job);
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  printf("  first row after %.1f ms  at most %llu kB resident beyond the mappings (%ld MB with them)\n", (double)first_ns / 1e6,
         (unsigned long long)most_kilobytes, usage.ru_maxrss / 1000);
}

/* As the job gets them: mapped for long, or just now. */
static uint64_t read_bytes(const subject *s, kernel_host *host) {
  uint64_t bytes = 0;
  if (s->count == 2) return bench_read_sum(host, s->data[0], s->bytes[0]) + bench_read_sum(host, s->data[1], s->bytes[1]);
  if (!s->is_check) return bench_read_sum(host, s->data[0], s->bytes[0]);
  const void *fresh = map_file(s->paths[0], &bytes);
  const uint64_t sum = fresh == NULL ? 0 : bench_read_sum(host, fresh, bytes);
  if (fresh != NULL) munmap((void *)(uintptr_t)fresh, (size_t)bytes);
  return sum;
}

static int compare(const subject *s, kernel_host *host, uint32_t rounds) {
  double read_gbs[BENCH_MAX_ROUNDS], job_gbs[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
  const uint64_t bytes = s->bytes[0] + s->bytes[1];
  uint64_t sink = read_bytes(s, host);
  const uint64_t before = anonymous_kilobytes();
  if (!run_job(s)) return 1;
  for (uint32_t r = 0; r < rounds; r++) {
    const uint64_t start = tm_now_ns();
    sink += read_bytes(s, host);
    const uint64_t middle = tm_now_ns();
    if (!run_job(s)) return 1;
    const uint64_t end = tm_now_ns();
    read_gbs[r] = (double)bytes / (double)(middle - start);
    job_gbs[r] = (double)bytes / (double)(end - middle);
    ratios[r] = job_gbs[r] / read_gbs[r];
  }
  const uint64_t after = anonymous_kilobytes();
  printf("%u threads  read %5.1f GB/s  %s %5.1f GB/s  %5.1f %% of read  %llu kB resident beyond the mapping (%llu more than before)%s\n",
         host->services.lane_count, bench_median(read_gbs, rounds), word_of(s),
         bench_median(job_gbs, rounds), 100 * bench_median(ratios, rounds),
         (unsigned long long)after, (unsigned long long)(after > before ? after - before : 0), sink == 1 ? " " : "");
  return 0;
}

static tm_status open_file(subject *s, const char *path, tm_error *error) {
  const uint32_t i = s->count++;
  s->paths[i] = path;
  s->data[i] = map_file(path, &s->bytes[i]);
  if (s->data[i] == NULL) return TM_ERROR_IO;
  return tm_checkpoint_open(s->context, path, 0, &s->checkpoints[i], error);
}

int main(int argc, char **argv) {
  const uint32_t rounds = (uint32_t)bench_option(argc, argv, "rounds", 9);
  const uint32_t threads = (uint32_t)bench_option(argc, argv, "threads", 2);
  if (argc < 2 || rounds > BENCH_MAX_ROUNDS) return 2;
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_MAP_FILES, .thread_count = threads };
  subject measured = { .is_check = bench_option(argc, argv, "check", 0) != 0 };
  kernel_host host;
  tm_status status = tm_context_create(&options, &measured.context, &error);
  for (int i = 1; i < argc && i < 3 && status == TM_OK; i++)
    if (argv[i][0] != '-') status = open_file(&measured, argv[i], &error);
  if (status != TM_OK || measured.count == 0) {
    fprintf(stderr, "%s: %s\n", argv[1], error.text);
    return 1;
  }
  kernel_host_open(&host, bench_builtin("cpu"), "auto", threads, threads);
  const int result = compare(&measured, &host, rounds);
  if (result == 0 && measured.count == 2) watch_job(&measured);
  kernel_host_close(&host);
  for (uint32_t i = 0; i < measured.count; i++) tm_checkpoint_close(measured.checkpoints[i]);
  tm_context_destroy(measured.context);
  return result;
}
