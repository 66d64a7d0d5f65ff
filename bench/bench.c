/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "plugin/builtin_plugins.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PART_BYTES (UINT64_C(1) << 20)

tm_plugin_query_fn bench_builtin(const char *name) {
  for (uint32_t i = 0; i < tm_builtin_plugin_count; ++i) {
    if (strcmp(tm_builtin_plugins[i].name, name) == 0) return tm_builtin_plugins[i].query;
  }
  return NULL;
}

uint64_t bench_option(int argc, char **argv, const char *name, uint64_t standard) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, name, length) == 0 && argv[i][2 + length] == '=') {
      return strtoull(argv[i] + 3 + length, NULL, 10);
    }
  }
  return standard;
}

typedef struct memory_job {
  const unsigned char *from;
  uint64_t             from_bytes;
  unsigned char       *to;      /* filled, unless to_bytes is 0 */
  uint64_t             to_bytes;
  uint64_t             sums[256];
} memory_job;

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t sum_bytes(const unsigned char *data, uint64_t bytes) {
  __m256i sums[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256() };
  for (uint64_t i = 0; i + 128 <= bytes; i += 128) {
    _mm_prefetch((const char *)data + i + 2048, _MM_HINT_T0);
    _mm_prefetch((const char *)data + i + 2112, _MM_HINT_T0);
    for (int k = 0; k < 4; ++k) sums[k] = _mm256_add_epi64(sums[k], _mm256_loadu_si256((const __m256i_u *)(data + i + 32 * k)));
  }
  uint64_t parts[4];
  _mm256_storeu_si256((__m256i_u *)parts, _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3])));
  return parts[0] + parts[1] + parts[2] + parts[3];
}

/* One line of the output, then as much of the input as keeps pace with it. */
__attribute__((target("avx2"))) static uint64_t read_and_fill(const unsigned char *from, uint64_t from_bytes, unsigned char *to,
                                                              uint64_t to_bytes) {
  const __m128i value = _mm_set1_epi8(0x11);
  __m256i sum = _mm256_setzero_si256();
  uint64_t read = 0;
  for (uint64_t i = 0; i + 64 <= to_bytes; i += 64) {
    for (int k = 0; k < 4; ++k) _mm_stream_si128((__m128i *)(void *)(to + i + 16 * k), value);
    _mm_prefetch((const char *)from + read + 2048, _MM_HINT_T0);
    const uint64_t target = (i + 64) * from_bytes / to_bytes;
    for (; read + 32 <= target; read += 32) sum = _mm256_add_epi64(sum, _mm256_loadu_si256((const __m256i_u *)(from + read)));
  }
  _mm_sfence();
  uint64_t parts[4];
  _mm256_storeu_si256((__m256i_u *)parts, sum);
  return parts[0] + parts[1] + parts[2] + parts[3];
}
#else
static uint64_t sum_bytes(const unsigned char *data, uint64_t bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < bytes; ++i) sum += data[i];
  return sum;
}
static uint64_t read_and_fill(const unsigned char *from, uint64_t from_bytes, unsigned char *to, uint64_t to_bytes) {
  memset(to, 0x11, to_bytes);
  return sum_bytes(from, from_bytes);
}
#endif

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Parts of the output, each with its share of the input. */
static void touch_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  memory_job *job = argument;
  const double share = (double)job->from_bytes / (double)job->to_bytes;
  for (uint64_t part = begin; part < end; ++part) {
    const uint64_t at = part * PART_BYTES, bytes = smaller(PART_BYTES, job->to_bytes - at);
    job->sums[lane] += read_and_fill(job->from + (uint64_t)(share * (double)at), (uint64_t)(share * (double)bytes), job->to + at, bytes);
  }
}

uint64_t bench_read_and_fill(kernel_host *host, const void *from, uint64_t from_bytes, void *to, uint64_t to_bytes) {
  memory_job job = { from, from_bytes, to, to_bytes, { 0 } };
  kernel_host_parallel_for(host, (to_bytes + PART_BYTES - 1) / PART_BYTES, 1, touch_range, &job);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < host->services.lane_count && i < 256; ++i) sum += job.sums[i];
  return sum;
}

static void read_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  memory_job *job = argument;
  const uint64_t from = begin * PART_BYTES, to = smaller(end * PART_BYTES, job->from_bytes);
  job->sums[lane] += sum_bytes(job->from + from, to - from);
}

uint64_t bench_read_sum(kernel_host *host, const void *data, uint64_t bytes) {
  memory_job job = { data, bytes, NULL, 0, { 0 } };
  kernel_host_parallel_for(host, (bytes + PART_BYTES - 1) / PART_BYTES, 1, read_range, &job);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < host->services.lane_count && i < 256; ++i) sum += job.sums[i];
  return sum;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(const double *values, uint32_t count) {
  double sorted[BENCH_MAX_ROUNDS];
  if (count == 0 || count > BENCH_MAX_ROUNDS) return 0;
  memcpy(sorted, values, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare_doubles);
  return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}
