/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_matmul [--rounds=9] [--size=N] [--rows=M] [--threads=1|2] [--avx2=1]: f32 matrix products of this library beside
 * OpenBLAS, BLIS and oneDNN, whichever of them is installed, in turns in one process, with 1 and 2 threads.  Matrices are
 * square, or the first has M rows.  Prints medians of GFLOP/s, and of the ratio to ours round by round.  The libraries are
 * opened at run time; what is not there is said to be missing.
 */
#define _POSIX_C_SOURCE 200809L

#include "bench.h"

#include <dlfcn.h>

#include "tensor/shape.h"

#define BACKEND   "cpu"
#define LIBRARIES 3

typedef void (*cblas_sgemm_fn)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                               const float *b, int ldb, float beta, float *c, int ldc);
typedef int (*dnnl_sgemm_fn)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                             int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* The constants of the C interface to the BLAS. */
#define ROW_MAJOR     101
#define NOT_TRANSPOSED 111

typedef struct peer {
  const char    *name;
  const char    *files[3];              /* tried in turn */
  const char    *set_threads;           /* takes an int or a 64-bit integer; both read the low half of one register */
  void          *handle;
  cblas_sgemm_fn cblas;
  dnnl_sgemm_fn  dnnl;
  void         (*threads)(int64_t count);
  char           version[160];
} peer;

static void find_symbol(void *handle, const char *name, void *out_function, size_t bytes) {
  void *address = dlsym(handle, name);
  memcpy(out_function, &address, bytes);
}

/* Each library says its version in its own way. */
static void read_version(peer *p) {
  const char *(*blis_version)(void);
  const char *(*openblas_config)(void);
  const int *(*dnnl_version)(void);
  find_symbol(p->handle, "bli_info_get_version_str", &blis_version, sizeof blis_version);
  find_symbol(p->handle, "openblas_get_config", &openblas_config, sizeof openblas_config);
  find_symbol(p->handle, "dnnl_version", &dnnl_version, sizeof dnnl_version);
  if (openblas_config != NULL) snprintf(p->version, sizeof p->version, "%s", openblas_config());
  else if (blis_version != NULL) snprintf(p->version, sizeof p->version, "%s", blis_version());
  else if (dnnl_version != NULL) snprintf(p->version, sizeof p->version, "%d.%d.%d", dnnl_version()[0], dnnl_version()[1], dnnl_version()[2]);
}

static void open_peer(peer *p) {
  for (size_t i = 0; i < sizeof p->files / sizeof p->files[0] && p->handle == NULL && p->files[i] != NULL; ++i)
    p->handle = dlopen(p->files[i], RTLD_NOW | RTLD_LOCAL);
  if (p->handle == NULL) {
    printf("%-9s missing: %s\n", p->name, dlerror());
    return;
  }
  find_symbol(p->handle, "cblas_sgemm", &p->cblas, sizeof p->cblas);
  find_symbol(p->handle, "dnnl_sgemm", &p->dnnl, sizeof p->dnnl);
  find_symbol(p->handle, p->set_threads, &p->threads, sizeof p->threads);
  read_version(p);
  printf("%-9s %s\n", p->name, p->version);
  if (p->cblas == NULL && p->dnnl == NULL) {
    printf("%-9s has no sgemm\n", p->name);
    p->handle = NULL;
  }
}

typedef struct product {
  int64_t      rows, size;              /* rows x size by size x size */
  const float *a, *b;
  float       *y;
} product;

static void run_peer(const peer *p, const product *x) {
  const int rows = (int)x->rows, size = (int)x->size;
  if (p->dnnl != NULL)
    p->dnnl('N', 'N', x->rows, x->size, x->size, 1.0f, x->a, x->size, x->b, x->size, 0.0f, x->y, x->size);
  else
    p->cblas(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, rows, size, size, 1.0f, x->a, size, x->b, size, 0.0f, x->y, size);
}

/* Seconds of one of `1 + LIBRARIES` contestants: ours is number 0. */
static double time_one(uint32_t number, const peer *peers, const kernel_run *run, const product *x) {
  void *const pointers[] = { (void *)(uintptr_t)x->a, (void *)(uintptr_t)x->b, x->y };
  const uint64_t start = tm_now_ns();
  if (number == 0) kernel_run_launch(run, pointers);
  else run_peer(&peers[number - 1], x);
  return (double)(tm_now_ns() - start) * 1e-9;
}

/* Threads of a library go on spinning for a while after their work (OpenBLAS for 2^26 cycles): the next one waits for that. */
#define SPIN_NS UINT64_C(40000000)
/* And this long each warms up before it is timed: cores that slept meanwhile wake slowly. */
#define WARM_NS UINT64_C(20000000)

static int prepare(kernel_host *host, kernel_run *run, const product *x, tm_operand *operands, const tm_matmul_attributes *attributes) {
  const uint64_t dims[2] = { (uint64_t)x->size, (uint64_t)x->size }, row_dims[2] = { (uint64_t)x->rows, (uint64_t)x->size };
  for (int i = 0; i < 3; ++i) tm_operand_contiguous(TM_FORMAT_F32, 2, i == 1 ? dims : row_dims, &operands[i], NULL);
  const tm_operation operation = {
    .struct_size = sizeof operation, .op = TM_OP_MATMUL, .version = 1, .worst_numerics = TM_NUMERICS_N2,
    .flags = TM_OPERATION_ALL_CONTIGUOUS | TM_OPERATION_ALL_SAME_FORMAT | (x->rows == x->size ? TM_OPERATION_ALL_SAME_SHAPE : 0),
    .attribute_bytes = sizeof *attributes, .input_count = 2, .output_count = 1, .operands = operands, .attributes = attributes,
  };
  return kernel_run_prepare(run, host, &operation) == TM_OK;
}

static void compare(kernel_host *host, const peer *peers, const product *x, uint32_t rounds) {
  double seconds[1 + LIBRARIES][BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
  const tm_matmul_attributes attributes = { 0, 0 };
  tm_operand operands[3];
  kernel_run run;
  if (!prepare(host, &run, x, operands, &attributes)) {
    printf("%5lld  refused: %s\n", (long long)x->size, host->text);
    return;
  }
  for (uint32_t round = 0; round <= rounds; ++round) {
    for (uint32_t i = 0; i <= LIBRARIES; ++i) {
      if (i > 0 && peers[i - 1].handle == NULL) continue;
      tm_sleep_ns(SPIN_NS);
      for (const uint64_t until = tm_now_ns() + WARM_NS; tm_now_ns() < until;) (void)time_one(i, peers, &run, x);
      const double s = time_one(i, peers, &run, x);
      if (round > 0) seconds[i][round - 1] = s;
    }
  }
  const double gflop = 2e-9 * (double)x->rows * (double)x->size * (double)x->size;
  printf("%5lld %5lld  %u  ours %6.1f", (long long)x->rows, (long long)x->size, host->services.lane_count, gflop / bench_median(seconds[0], rounds));
  for (uint32_t i = 1; i <= LIBRARIES; ++i) {
    if (peers[i - 1].handle == NULL) continue;
    for (uint32_t round = 0; round < rounds; ++round) ratios[round] = seconds[i][round] / seconds[0][round];
    printf("   %s %6.1f (ours is %.2f of it)", peers[i - 1].name, gflop / bench_median(seconds[i], rounds), bench_median(ratios, rounds));
  }
  printf("\n");
  kernel_run_release(&run);
}

static float *random_matrix(uint64_t count, uint32_t seed) {
  float *values = malloc(count * sizeof *values);
  uint32_t state = seed;
  for (uint64_t i = 0; values != NULL && i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(int32_t)state * 0x1p-31f;
  }
  return values;
}

/* OpenBLAS takes processors that are newer than it for one of 2004, and so would run at a third of what it can. */
static void name_processor(void) {
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) setenv("OPENBLAS_CORETYPE", "Haswell", 1);
}

/* Threads of a library that spin while they wait would slow down whoever comes next, and settings meant for another
   machine would slow down theirs. */
static void make_fair(void) {
  static const char *const settings[] = { "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "BLIS_ARCH_TYPE" };
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
    if (getenv(settings[i]) == NULL) continue;
    printf("%s is set; it is left out of account\n", settings[i]);
    unsetenv(settings[i]);
  }
  setenv("OMP_WAIT_POLICY", "passive", 1);
  name_processor();
}

int main(int argc, char **argv) {
  static const int64_t sizes[] = { 512, 768, 1024, 1536, 2048 };
  peer peers[LIBRARIES] = {
    { .name = "OpenBLAS", .files = { "libopenblas.so.0", "libopenblas.so" }, .set_threads = "openblas_set_num_threads" },
    { .name = "BLIS", .files = { "libblis.so.4", "libblis.so.3", "libblis.so" }, .set_threads = "bli_thread_set_num_threads" },
    { .name = "oneDNN", .files = { "libdnnl.so.3", "libdnnl.so.2", "libdnnl.so" }, .set_threads = "omp_set_num_threads" },
  };
  const uint64_t asked = bench_option(argc, argv, "rounds", 9), only = bench_option(argc, argv, "size", 0);
  const uint64_t rows = bench_option(argc, argv, "rows", 0), threads_asked = bench_option(argc, argv, "threads", 0);
  const char *isa = bench_option(argc, argv, "avx2", 0) != 0 ? "avx2" : "auto";
  const uint32_t rounds = asked < 1 ? 1 : asked > BENCH_MAX_ROUNDS ? BENCH_MAX_ROUNDS : (uint32_t)asked;
  const uint64_t largest = only > rows ? only : rows, most = largest > 2048 ? largest : 2048;
  make_fair();
  for (int i = 0; i < LIBRARIES; ++i) open_peer(&peers[i]);
  product x = { .a = random_matrix(most * most, 1), .b = random_matrix(most * most, 2), .y = random_matrix(most * most, 3) };
  if (x.a == NULL || x.b == NULL || x.y == NULL) return 1;
  printf("f32, medians of %u rounds, GFLOP/s\n rows  size  threads\n", rounds);
  for (uint32_t threads = 1; threads <= 2; ++threads) {
    kernel_host host;
    if (threads_asked != 0 && threads != threads_asked) continue;
    kernel_host_open(&host, bench_builtin(BACKEND), isa, 1, threads);
    for (int i = 0; i < LIBRARIES; ++i) {
      if (peers[i].handle != NULL && peers[i].threads != NULL) peers[i].threads(threads);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
      x.size = only > 0 ? (int64_t)only : sizes[i];
      x.rows = rows > 0 ? (int64_t)rows : x.size;
      compare(&host, peers, &x, rounds);
      if (only > 0) break;
    }
    kernel_host_close(&host);
  }
  free((void *)(uintptr_t)x.a);
  free((void *)(uintptr_t)x.b);
  free(x.y);
  return 0;
}
