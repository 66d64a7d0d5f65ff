/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plugins in the search path add to the making of a context: none, and those in FOLDER, in turns.  First sight (each
 * tried in a process of its own, with canaries), from what was kept, without a state folder, and with everything woken.
 *   bench_loading FOLDER [--rounds=N]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "tensormorph/tensormorph.h"

#define LONGEST_PATH 512

typedef struct loading_bench {
  const char *folder;
  char        state[LONGEST_PATH];
  uint32_t    plugin_count;             /* that were ready, the last time */
} loading_bench;

static uint32_t count_ready(tm_context *context) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  uint32_t count = 0;
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    count += backend.state == TM_BACKEND_READY && backend.origin[0] == '/';
  return count;
}

/* Asks each device something, which wakes its backend. */
static void wake(tm_context *context) {
  tm_support support = { .struct_size = sizeof support };
  for (uint32_t i = 0; tm_support_query(context, i, TM_OP_NEG, TM_FORMAT_F32, &support) != TM_END; i++) {
  }
}

static double open_ms(loading_bench *b, bool with_plugins, bool with_state, bool awake) {
  (void)setenv("TENSORMORPH_PLUGIN_PATH", with_plugins ? b->folder : "/nonexistent", 1);
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_LOAD_PLUGINS,
                                       .state_folder = with_state ? b->state : NULL };
  tm_context *context = NULL;
  const uint64_t begin = tm_now_ns();
  if (tm_context_create(&options, &context, NULL) != TM_OK) return 0;
  if (awake) wake(context);
  const uint64_t end = tm_now_ns();
  if (with_plugins) b->plugin_count = count_ready(context);
  tm_context_destroy(context);
  return (double)(end - begin) / 1e6;
}

static void forget(const loading_bench *b) {
  char path[LONGEST_PATH + 300];
  (void)snprintf(path, sizeof path, "%s/backends", b->state);
  DIR *folder = opendir(path);
  for (const struct dirent *entry = folder == NULL ? NULL : readdir(folder); entry != NULL; entry = readdir(folder)) {
    (void)snprintf(path, sizeof path, "%s/backends/%s", b->state, entry->d_name);
    (void)unlink(path);
  }
  if (folder != NULL) (void)closedir(folder);
}

static void print_medians(loading_bench *b, uint32_t rounds) {
  double none[BENCH_MAX_ROUNDS], first[BENCH_MAX_ROUNDS], kept[BENCH_MAX_ROUNDS], stateless[BENCH_MAX_ROUNDS], awake[BENCH_MAX_ROUNDS];
  for (uint32_t i = 0; i < rounds; i++) {
    forget(b);
    first[i] = open_ms(b, true, true, false);
    none[i] = open_ms(b, false, true, false);
    kept[i] = open_ms(b, true, true, false);
    stateless[i] = open_ms(b, true, false, false);
    awake[i] = open_ms(b, true, true, true);
  }
  const double base = bench_median(none, rounds);
  printf("making a context, ms, median of %u; %u plugins ready\n", rounds, b->plugin_count);
  printf("without plugins     %8.3f\n", base);
  printf("first sight         %8.3f  (+%.3f)\n", bench_median(first, rounds), bench_median(first, rounds) - base);
  printf("from what was kept  %8.3f  (+%.3f)\n", bench_median(kept, rounds), bench_median(kept, rounds) - base);
  printf("... and all woken   %8.3f  (+%.3f)\n", bench_median(awake, rounds), bench_median(awake, rounds) - base);
  printf("no state folder     %8.3f  (+%.3f)\n", bench_median(stateless, rounds), bench_median(stateless, rounds) - base);
}

int main(int argc, char **argv) {
  const uint64_t rounds = bench_option(argc, argv, "rounds", 11);
  if (argc < 2 || argv[1][0] != '/' || rounds == 0 || rounds > BENCH_MAX_ROUNDS) {
    fputs("usage: bench_loading /FOLDER [--rounds=N]\n", stderr);
    return 2;
  }
  loading_bench b = { .folder = argv[1] };
  const char *base = getenv("TMPDIR");
  (void)snprintf(b.state, sizeof b.state, "%s/tm-bench-XXXXXX", base != NULL ? base : "/tmp");
  if (mkdtemp(b.state) == NULL) return 1;
  print_medians(&b, (uint32_t)rounds);
  char records[LONGEST_PATH + 16];
  (void)snprintf(records, sizeof records, "%s/backends", b.state);
  forget(&b);
  (void)rmdir(records);
  (void)rmdir(b.state);
  return 0;
}
