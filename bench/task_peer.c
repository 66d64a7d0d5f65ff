/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "task_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#ifdef BENCH_HAS_STARPU

#include <starpu.h>

#include "base/clock.h"

static void add(void *buffers[], void *unused) {
  (void)unused;
  const float *x = (const float *)STARPU_VECTOR_GET_PTR(buffers[0]);
  float *y = (float *)STARPU_VECTOR_GET_PTR(buffers[1]);
  for (uint32_t i = 0, count = STARPU_VECTOR_GET_NX(buffers[1]); i < count; i++) y[i] += x[i];
}

typedef struct tasks {
  struct starpu_codelet  codelet;
  starpu_data_handle_t   x;
  starpu_data_handle_t  *y;
  uint32_t               count;
} tasks;

/* ns a task, from the first given in to the last one done; each on its own data, or all on the same. */
static double run(tasks *t, int chained) {
  const uint64_t begin = tm_now_ns();
  for (uint32_t i = 0; i < t->count; i++)
    if (starpu_task_insert(&t->codelet, STARPU_R, t->x, STARPU_RW, t->y[chained ? 0 : i], 0) != 0) return 0;
  (void)starpu_task_wait_for_all();
  return (double)(tm_now_ns() - begin) / t->count;
}

static void measure(tasks *t, uint32_t rounds, bench_task_peer *out_peer) {
  double independent[BENCH_MAX_ROUNDS], chained[BENCH_MAX_ROUNDS];
  for (uint32_t i = 0; i < 10; i++) (void)(run(t, 0) + run(t, 1));
  for (uint32_t i = 0; i < rounds; i++) {
    independent[i] = run(t, 0);
    chained[i] = run(t, 1);
  }
  out_peer->independent_ns = bench_median(independent, rounds);
  out_peer->chained_ns = bench_median(chained, rounds);
}

static int measure_all(uint32_t count, uint32_t elements, uint32_t rounds, bench_task_peer *out_peer) {
  tasks t = { .count = count, .y = calloc(count, sizeof *t.y) };
  float *data = calloc((uint64_t)elements * (count + 1), sizeof *data);
  const int whole = t.y != NULL && data != NULL;
  if (whole) {
    starpu_codelet_init(&t.codelet);
    t.codelet.cpu_funcs[0] = add;
    t.codelet.nbuffers = 2;
    t.codelet.modes[0] = STARPU_R;
    t.codelet.modes[1] = STARPU_RW;
    starpu_vector_data_register(&t.x, STARPU_MAIN_RAM, (uintptr_t)data, elements, sizeof *data);
    for (uint32_t i = 0; i < count; i++)
      starpu_vector_data_register(&t.y[i], STARPU_MAIN_RAM, (uintptr_t)&data[(uint64_t)elements * (i + 1)], elements, sizeof *data);
    measure(&t, rounds, out_peer);
    for (uint32_t i = 0; i < count; i++) starpu_data_unregister(t.y[i]);
    starpu_data_unregister(t.x);
  }
  free(data);
  free(t.y);
  return whole && out_peer->independent_ns > 0 && out_peer->chained_ns > 0;
}

int bench_task_peer_measure(uint32_t count, uint32_t elements, uint32_t threads, uint32_t rounds, bench_task_peer *out_peer) {
  struct starpu_conf conf;
  int major = 0, minor = 0, release = 0;
  memset(out_peer, 0, sizeof *out_peer);
  snprintf(out_peer->version, sizeof out_peer->version, "it cannot be started");
  (void)setenv("STARPU_SILENT", "1", 0);
  if (starpu_conf_init(&conf) != 0) return 0;
  conf.ncpus = (int)threads;
  conf.ncuda = conf.nopencl = 0;
  conf.sched_policy_name = "lws";
  if (starpu_init(&conf) != 0) return 0;
  starpu_get_version(&major, &minor, &release);
  const int whole = measure_all(count, elements, rounds, out_peer);
  starpu_shutdown();
  snprintf(out_peer->version, sizeof out_peer->version, "%d.%d.%d", major, minor, release);
  return whole;
}

#else

int bench_task_peer_measure(uint32_t count, uint32_t elements, uint32_t threads, uint32_t rounds, bench_task_peer *out_peer) {
  (void)count, (void)elements, (void)threads, (void)rounds;
  memset(out_peer, 0, sizeof *out_peer);
  snprintf(out_peer->version, sizeof out_peer->version, "libstarpu-dev is missing");
  return 0;
}

#endif
