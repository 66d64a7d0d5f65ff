/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stream FILE [--plugin=PATH] [--without=NAME]... [--threads=N] [--seconds=10] [--pin=1]: the statistics job over a
 * checkpoint, again and again, with the devices that there are but those named, and small operations in between as somebody at
 * a keyboard wants them.  Prints what each device did, how near that is to the least time that they could have taken together
 * (bound / achieved), and how long the small operations took while the job ran.
 *
 * --pin=1: one core for the library and its lanes, another for PoCL's device, so that the two are as different silicon: a core
 * each, and none takes the other's time.  Its kernel is compiled before the job, which is over sooner than a compiler is and would
 * rightly do without.  What each thread was allowed at the end is printed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#include "tensormorph/tensormorph.h"

#define MOST_SAMPLES 200000u
#define PAUSE_NS 2000000u
#define SIDE 64u
#define MOST_WITHOUT 8u
#define TILE_ELEMENTS (UINT64_C(4) << 20)
#define WARM_RUNS 20

typedef struct samples {
  double   ns[MOST_SAMPLES];
  uint32_t count;
} samples;

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The least time in which devices as fast as these are could have done what they did, beside what it took.  Two lanes of one device
   share its silicon: it was not busy for longer than the job took, so the least time is no more than that either. */
static void show_job(const tm_job *job) {
  tm_progress progress = { .struct_size = sizeof progress };
  tm_device_usage usage = { .struct_size = sizeof usage };
  double bytes = 0, rate = 0;
  tm_job_progress(job, &progress);
  for (uint32_t i = 0; tm_job_device_usage(job, i, &usage) == TM_OK; i++) {
    if (usage.busy_ns == 0 || usage.bytes == 0) continue;
    const uint64_t busy_ns = usage.busy_ns < progress.elapsed_ns ? usage.busy_ns : progress.elapsed_ns;
    bytes += (double)usage.bytes;
    rate += (double)usage.bytes / (double)busy_ns;
    printf("  %-12s %8" PRIu64 " operations  %8.1f MB  %6.2f GB/s while busy\n", usage.device_name, usage.operation_count,
           (double)usage.bytes / 1e6, (double)usage.bytes / (double)busy_ns);
  }
  if (rate > 0)
    printf("  %.3f s: %.2f GB/s, bound / achieved %.3f\n", (double)progress.elapsed_ns / 1e9, bytes / (double)progress.elapsed_ns,
           bytes / rate / (double)progress.elapsed_ns);
}

static int run_small(tm_context *context, tm_tensor *const *operands, samples *taken) {
  const uint64_t begin = tm_now_ns();
  tm_error error = { .struct_size = sizeof error };
  if (tm_run(context, TM_OP_ADD, NULL, 0, operands, 2, &operands[2], 1, NULL, &error) != TM_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 0;
  }
  if (taken->count < MOST_SAMPLES) taken->ns[taken->count++] = (double)(tm_now_ns() - begin);
  return 1;
}

static int run_beside(tm_context *context, tm_checkpoint *checkpoint, tm_tensor *const *operands, samples *taken) {
  tm_job *job = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_job_start_stats(context, &checkpoint, 1, NULL, &job, &error) != TM_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 0;
  }
  while (tm_job_wait(job, PAUSE_NS, NULL) == TM_PENDING)
    if (!run_small(context, operands, taken)) break;
  const int whole = tm_job_wait(job, UINT64_MAX, &error) == TM_OK;
  if (!whole) fprintf(stderr, "%s\n", error.text);
  show_job(job);
  tm_job_destroy(job);
  return whole;
}

static void show_samples(const char *what, samples *taken) {
  if (taken->count == 0) return;
  qsort(taken->ns, taken->count, sizeof *taken->ns, compare_doubles);
  printf("%s: %u, median %.1f us, p99 %.1f us, most %.1f us\n", what, taken->count, taken->ns[taken->count / 2] / 1e3,
         taken->ns[(uint64_t)taken->count * 99 / 100] / 1e3, taken->ns[taken->count - 1] / 1e3);
}

static int bench(tm_context *context, tm_checkpoint *checkpoint, uint64_t seconds) {
  static samples alone, beside;
  tm_tensor *operands[3] = { NULL };
  const uint64_t dims[] = { SIDE, SIDE };
  for (int i = 0; i < 3; i++)
    if (tm_tensor_create(context, TM_FORMAT_F32, 2, dims, &operands[i], NULL) != TM_OK) return 0;
  int whole = 1;
  for (int i = 0; i < 1000 && whole; i++) whole = run_small(context, operands, &alone);
  const uint64_t begin = tm_now_ns();
  do whole = whole && run_beside(context, checkpoint, operands, &beside);
  while (whole && tm_now_ns() - begin < seconds * UINT64_C(1000000000));
  show_samples("additions of 64 x 64 with nothing beside them", &alone);
  show_samples("the same beside the job", &beside);
  for (int i = 0; i < 3; i++) tm_tensor_destroy(operands[i]);
  return whole;
}

/* ---- a core each ---- */

#define OTHERS_CORE 0           /* where PoCL puts the only thread that it is allowed */
#define OWN_CORE    1

/* Before any thread is made: those that are made later inherit it, and PoCL moves its own. */
static int pin_all(void) {
  cpu_set_t both, own;
  CPU_ZERO(&own);
  CPU_SET(OWN_CORE, &own);
  if (sched_getaffinity(0, sizeof both, &both) != 0 || !CPU_ISSET(OTHERS_CORE, &both) || !CPU_ISSET(OWN_CORE, &both)) return 0;
  if (setenv("POCL_CPU_MAX_CU_COUNT", "1", 1) != 0 || setenv("POCL_AFFINITY", "1", 1) != 0) return 0;
  return sched_setaffinity(0, sizeof own, &own) == 0;
}

/* How many threads may run on each of the two, and how many on anything else. */
static void show_pins(void) {
  DIR *threads = opendir("/proc/self/task");
  uint32_t counts[3] = { 0 };
  for (struct dirent *one = threads == NULL ? NULL : readdir(threads); one != NULL; one = readdir(threads)) {
    cpu_set_t allowed;
    const pid_t thread = (pid_t)strtol(one->d_name, NULL, 10);
    if (thread <= 0 || sched_getaffinity(thread, sizeof allowed, &allowed) != 0) continue;
    const int is_single = CPU_COUNT(&allowed) == 1;
    counts[is_single && CPU_ISSET(OTHERS_CORE, &allowed) ? 0 : is_single && CPU_ISSET(OWN_CORE, &allowed) ? 1 : 2]++;
  }
  if (threads != NULL) (void)closedir(threads);
  printf("threads: %u on core %d (the other device's), %u on core %d (the library's), %u not on one of these\n", counts[0],
         OTHERS_CORE, counts[1], OWN_CORE, counts[2]);
}

/* The statistics of a tile, several times, on the devices of that backend alone: kernels are ready then, and speeds known. */
static int warm_up(tm_context *context, const char *backend) {
  const char *own[] = { "cpu", "reference" };
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1,
                                    .devices = &backend, .device_count = 1, .excluded_devices = own, .excluded_device_count = 2 };
  const uint64_t dims[] = { TILE_ELEMENTS };
  tm_graph *graph = NULL;
  tm_plan *plan = NULL;
  tm_tensor *tile = NULL, *figures = NULL;
  tm_error error = { .struct_size = sizeof error };
  tm_operand layouts[2] = { { 0 } };
  uint32_t input, result;
  int whole = tm_tensor_create(context, TM_FORMAT_F32, 1, dims, &tile, &error) == TM_OK;
  if (whole) layouts[0] = *tm_tensor_operand(tile);
  whole = whole && tm_op_infer(TM_OP_STATS, NULL, 0, layouts, 1, &layouts[1], 1, &error) == TM_OK &&
          tm_tensor_create(context, layouts[1].format, layouts[1].rank, layouts[1].dims, &figures, &error) == TM_OK &&
          tm_graph_create(context, &graph, &error) == TM_OK && tm_graph_input(graph, "tile", &layouts[0], &input, &error) == TM_OK &&
          tm_graph_node(graph, NULL, TM_OP_STATS, NULL, 0, &input, 1, NULL, 1, &result, &error) == TM_OK &&
          tm_graph_output(graph, "figures", result, &error) == TM_OK && tm_plan_create(graph, &options, &plan, &error) == TM_OK;
  for (int i = 0; i < WARM_RUNS && whole; i++) whole = tm_plan_run(plan, &tile, 1, &figures, 1, NULL, &error) == TM_OK;
  if (!whole) fprintf(stderr, "%s: %s\n", backend, error.text);
  tm_plan_destroy(plan);
  tm_graph_destroy(graph);
  tm_tensor_destroy(tile);
  tm_tensor_destroy(figures);
  return whole;
}

static int say_usage(void) {
  fprintf(stderr, "usage: bench_stream FILE [--plugin=PATH] [--without=NAME]... [--threads=N] [--seconds=10] [--pin=1]\n");
  return 2;
}

int main(int argc, char **argv) {
  if (argc < 2) return say_usage();
  const int is_pinned = bench_option(argc, argv, "pin", 0) != 0;
  if (is_pinned && !pin_all()) return fprintf(stderr, "bench_stream: there are no two cores to pin to\n"), 1;
  const char *plugin = NULL, *without[MOST_WITHOUT];
  uint32_t without_count = 0;
  for (int i = 2; i < argc; i++) {
    if (strncmp(argv[i], "--plugin=", 9) == 0) plugin = argv[i] + 9;
    if (strncmp(argv[i], "--without=", 10) == 0 && without_count < MOST_WITHOUT) without[without_count++] = argv[i] + 10;
  }
  tm_error error = { .struct_size = sizeof error };
  const tm_setting own_cores = { "opencl", "own_cores", "1" };
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_MAP_FILES,
                                       .thread_count = (uint32_t)bench_option(argc, argv, "threads", (uint64_t)is_pinned),
                                       .plugin_paths = &plugin, .plugin_path_count = plugin != NULL,
                                       .settings = &own_cores, .setting_count = (uint32_t)is_pinned,
                                       .excluded_devices = without, .excluded_device_count = without_count };
  tm_context *context = NULL;
  tm_checkpoint *checkpoint = NULL;
  tm_status status = tm_context_create(&options, &context, &error);
  if (status == TM_OK) status = tm_checkpoint_open(context, argv[1], 0, &checkpoint, &error);
  if (status != TM_OK) fprintf(stderr, "%s\n", error.text);
  const int whole = status == TM_OK && (!is_pinned || warm_up(context, "opencl")) && bench(context, checkpoint, bench_option(argc, argv, "seconds", 10));
  if (whole && is_pinned) show_pins();
  tm_checkpoint_close(checkpoint);
  tm_context_destroy(context);
  return whole ? 0 : 1;
}
