/* SPDX-License-Identifier: Apache-2.0 */
#include "blas_cost.h"

#define LAUNCH_NS 300.0
#define BATCH_NS 200.0
#define BYTES_PER_NS 8.0                /* of one thread, from memory */
#define FLOPS_A_THREAD 4e6              /* from so many on, another thread is worth its start */
#define MOST_NS 1e15
#define UNKNOWN_FLOPS_PER_NS 2.0

/* 32 or 16 f32 multiply-adds a cycle at 3 GHz, of which two thirds are reached. */
static double usual_rate(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 120;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 60;
#endif
  return 15;
}

blas_rates blas_rates_make(const blas_library *library, uint32_t gflops) {
  const double usual = library->is_known ? usual_rate() : UNKNOWN_FLOPS_PER_NS;
  return (blas_rates){ library->thread_count, gflops != 0 ? gflops : usual };
}

void blas_cost_fill(const blas_rates *rates, const blas_product *product, tm_answer *answer) {
  const double m = product->m, n = product->n, k = product->k;
  const double element = product->format == TM_FORMAT_F64 ? 8 : 4;
  const double flops = 2 * m * n * k, bytes = element * (m * k + k * n + m * n);
  const double useful = 1 + flops / FLOPS_A_THREAD;
  const double threads = useful < rates->thread_count ? useful : rates->thread_count;
  const double compute = flops / (rates->flops_per_ns * 4 / element * threads), move = bytes / (BYTES_PER_NS * threads);
  const double batches = (double)product->batch_count;
  const double cost = LAUNCH_NS + batches * (BATCH_NS + (compute > move ? compute : move));
  answer->launch_ns = (uint64_t)LAUNCH_NS;
  answer->cost_ns = (uint64_t)(cost < MOST_NS ? cost : MOST_NS);
  answer->spread_ns = answer->cost_ns / 4;
  answer->moved_bytes = (uint64_t)(batches * bytes < 0x1p62 ? batches * bytes : 0x1p62);
}
