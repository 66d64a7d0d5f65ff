/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is never given back, whoever's it is: of the process, as the C library and the system count it, and of the
 * device.  Drivers keep much when they are first used, and some a little each time; what grows on and on, by far more, is lost.
 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/checked.h"
#include "conformance/errand.h"
#include "conformance/manner.h"

#define BATCHES 7u
#define WARM_BATCHES 3u                 /* of them, that may grow as they like */
#define PREPARES 8u                     /* a batch */
#define LAUNCHES 64u
#define BUFFERS 8u
#define BUFFER_BYTES (UINT64_C(1) << 20)
#define UPLOAD_BYTES 64u
#define LIFE_BYTES (UINT64_C(4) << 20)  /* a driver was seen to keep 1.7 MB; more with each is too much */
#define PREPARE_BYTES (UINT64_C(32) << 10)
#define LAUNCH_BYTES (UINT64_C(2) << 10)
#define LARGEST_MEMORY (UINT64_C(1) << 30)      /* of a device, that is gone through */
#define LARGE_BUFFERS 12u
#define SHARE 4u                        /* of the memory, one of them */

#define IS_COUNTED (TM_BUILD_SANITIZERS_ == 0)  /* they keep what was freed */

typedef struct footprint {
  uint64_t heap_bytes;          /* that are allocated */
  uint64_t mapped_bytes;        /* of all kinds */
  uint64_t device_bytes;        /* as it says itself */
} footprint;

typedef struct growing {
  manner_run *run;
  subject    *s;                /* NULL: between lives */
  errand     *e;
  const char *what;             /* one of which there are many in a batch */
  uint32_t    count;            /* in a batch */
  uint64_t    least_bytes;      /* of each */
  bool        counts_mapped;    /* not where threads come and go */
} growing;

#if IS_COUNTED
/* Where the C library does not tell, what is mapped must do. */
static uint64_t heap_bytes(void) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#else
  return 0;
#endif
}
#endif

static footprint measure(const growing *g) {
  footprint now = { 0, 0, 0 };
#if IS_COUNTED
  now.heap_bytes = heap_bytes();
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file != NULL && fscanf(file, "%llu", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  if (g->counts_mapped) now.mapped_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
#endif
  tm_memory_stats stats = { .struct_size = sizeof stats };
  if (g->s != NULL && SUBJECT_CALL(g->s, memory_stats)(g->s->device, 0, &stats) == TM_OK) now.device_bytes = stats.used_bytes;
  return now;
}

/* ---- what is repeated ---- */

static tm_status live(growing *g) {
  subject s;
  if (!manner_open(g->run, &s, 0)) return TM_ERROR_INTERNAL;
  subject_close(&s);
  return TM_OK;
}

static tm_status prepare(growing *g) {
  tm_kernel *kernel = NULL;
  const tm_status status = SUBJECT_CALL(g->s, prepare)(g->s->device, &g->e->q.c.operation, &g->e->answer, &kernel);
  if (status == TM_OK) SUBJECT_CALL(g->s, release)(g->s->device, kernel);
  return status;
}

static tm_status launch(growing *g) {
  tm_ticket ticket;
  const tm_status status = errand_launch(g->e, 0, NULL, 0, &ticket);
  if (status != TM_OK || (g->s->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return status;
  return SUBJECT_CALL(g->s, wait)(g->s->device, &ticket, 1, TM_WAIT_FOREVER);
}

/* With some work on it: drivers free a buffer behind that of their queue which comes next. */
static tm_status make_buffer(growing *g) {
  tm_buffer *buffer = NULL;
  unsigned char bytes[UPLOAD_BYTES] = { 0 };
  tm_ticket ticket = { 0, 0, 0 };
  tm_status status = SUBJECT_CALL(g->s, buffer_create)(g->s->device, 0, BUFFER_BYTES, &buffer);
  if (status != TM_OK) return status;
  const tm_transfer up = { .struct_size = sizeof up, .destination = buffer, .host = bytes, .bytes = sizeof bytes };
  status = subject_transfer(g->s, SUBJECT_CALL(g->s, upload), &up, &ticket);
  SUBJECT_CALL(g->s, buffer_destroy)(g->s->device, 0, buffer, BUFFER_BYTES, 0);
  return status;
}

/* ---- growth ---- */

static uint64_t grown(uint64_t before, uint64_t after) { return after > before ? after - before : 0; }

static void judge(growing *g, uint64_t bytes, const char *whose) {
  if (bytes < g->count * g->least_bytes) return;
  trial_fail(&g->run->t, "keeps %llu bytes more of the %s's memory with each of its %s", (unsigned long long)(bytes / g->count),
             whose, g->what);
}

/* What went well before has to go on doing so, unless the device is full for a moment or takes back what it said. */
static bool goes_on(growing *g, tm_status (*one)(growing *g), uint32_t done) {
  const tm_status status = one(g);
  const bool is_excused = done == 0 || status == TM_BUSY || status == TM_STALE || g->run->t.failed;
  if (status != TM_OK && !is_excused)
    trial_fail(&g->run->t, "fails with status %d after %u %s that went well", status, done, g->what);
  return status == TM_OK;
}

/* The least that any batch behind the first few added, as each has to. */
static void repeat(growing *g, tm_status (*one)(growing *g)) {
  footprint least = { UINT64_MAX, UINT64_MAX, UINT64_MAX };
  for (uint32_t batch = 0; batch < BATCHES; batch++) {
    if (manner_ends_early(g->run, batch, BATCHES, g->what)) return;
    const footprint before = measure(g);
    for (uint32_t i = 0; i < g->count; i++)
      if (!goes_on(g, one, batch * g->count + i)) return;
    const footprint after = measure(g);
    if (batch < WARM_BATCHES) continue;
    least.heap_bytes = tm_min_u64(least.heap_bytes, grown(before.heap_bytes, after.heap_bytes));
    least.mapped_bytes = tm_min_u64(least.mapped_bytes, grown(before.mapped_bytes, after.mapped_bytes));
    least.device_bytes = tm_min_u64(least.device_bytes, grown(before.device_bytes, after.device_bytes));
  }
  judge(g, tm_max_u64(least.heap_bytes, least.mapped_bytes), "process");
  judge(g, least.device_bytes, "device");
}

/* Several times what it has, one after the other.  Others may have so much of it that there is none for the first. */
static void go_through_memory(growing *g) {
  const tm_memory_space *space = &g->s->space;
  const uint64_t largest = space->largest_buffer_bytes == 0 ? UINT64_MAX : space->largest_buffer_bytes;
  const uint64_t bytes = tm_min_u64(space->total_bytes / SHARE, largest);
  if (space->total_bytes > LARGEST_MEMORY || bytes < space->total_bytes / LARGE_BUFFERS || bytes == 0) return;
  for (uint32_t i = 0; i < LARGE_BUFFERS; i++) {
    tm_buffer *buffer = NULL;
    const tm_status status = SUBJECT_CALL(g->s, buffer_create)(g->s->device, 0, bytes, &buffer);
    if (status != TM_OK && i == 0 && status != TM_ERROR_NO_MEMORY)
      trial_fail(&g->run->t, "makes no buffer of %llu bytes: status %d", (unsigned long long)bytes, status);
    if (status != TM_OK && i > 0)
      trial_fail(&g->run->t, "has no memory for a buffer of %llu bytes after %u such were made and destroyed",
                 (unsigned long long)bytes, i);
    if (status != TM_OK) return;
    SUBJECT_CALL(g->s, buffer_destroy)(g->s->device, 0, buffer, bytes, 0);
  }
}

static void work(manner_run *run, subject *s) {
  errand e;
  growing g = { .run = run, .s = s, .e = &e, .counts_mapped = true };
  if (errand_make(&e, s, 0, run->seed, &run->t)) {
    g.what = "launches", g.count = LAUNCHES, g.least_bytes = LAUNCH_BYTES;
    repeat(&g, launch);
    g.what = "prepares", g.count = PREPARES, g.least_bytes = PREPARE_BYTES;
    if (!run->t.failed) repeat(&g, prepare);
  }
  g.what = "buffers", g.count = BUFFERS, g.least_bytes = BUFFER_BYTES / 2;
  if (!run->t.failed && !s->host_makes_buffers) repeat(&g, make_buffer);
  if (!run->t.failed && !s->host_makes_buffers) go_through_memory(&g);
  errand_free(&e);
}

void manner_check_growth(manner_run *run) {
  subject s;
  growing lives = { .run = run, .what = "lives", .count = 1, .least_bytes = LIFE_BYTES };
  if (run->in_this_process || !IS_COUNTED) {
    manner_skip(run, IS_COUNTED ? "it needs a process of its own" : "a sanitizer keeps what was freed");
    return;
  }
  repeat(&lives, live);
  if (run->t.failed || !manner_open(run, &s, 0)) return;
  work(run, &s);
  subject_close(&s);
}
