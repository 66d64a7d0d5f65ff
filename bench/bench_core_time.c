/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's own time for each of many tiny operations on a device that takes work without waiting for it: what a replay
 * takes, less what is spent in the contract's calls.  The device is a fake that says yes and computes nothing, in the host's
 * memory or in memory of its own; or any plugin's.
 *     bench_core_time [--nodes=N] [--elements=N] [--plugin=PATH --backend=NAME]
 */
#include <stdio.h>
#include <string.h>

#include "api/context.h"
#include "base/clock.h"
#include "bench.h"
#include "chain.h"
#include "fakes/fake_control.h"
#include "fakes/idle_devices.h"

#define ROUNDS 101u
#define WARM_UP 80u

/* Between the library and the backend: one thread replays, so nobody else counts meanwhile. */
static struct {
  tm_accelerator_backend_plugin own;
  uint64_t inside_ns;
  uint64_t calls;
} spy;

static tm_status note(uint64_t begin_ns, tm_status status) {
  spy.inside_ns += tm_now_ns() - begin_ns;
  spy.calls++;
  return status;
}

static tm_status spy_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const uint64_t begin_ns = tm_now_ns();
  return note(begin_ns, spy.own.launch(device, launch, out_ticket));
}

static tm_status spy_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  const uint64_t begin_ns = tm_now_ns();
  return note(begin_ns, spy.own.upload(device, transfer, out_ticket));
}

static tm_status spy_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  const uint64_t begin_ns = tm_now_ns();
  return note(begin_ns, spy.own.download(device, transfer, out_ticket));
}

static tm_status spy_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const uint64_t begin_ns = tm_now_ns();
  return note(begin_ns, spy.own.wait(device, tickets, count, timeout_ns));
}

static bool put_between(tm_context *context, const char *backend) {
  for (uint32_t i = 0; i < context->inventory->backend_count; i++) {
    tm_backend_slot *slot = context->inventory->backends[i];
    if (strcmp(slot->name, backend) != 0 || atomic_load(&slot->state) != TM_BACKEND_READY) continue;
    spy.own = slot->table;
    slot->table.launch = spy_launch;
    slot->table.upload = spy_upload;
    slot->table.download = spy_download;
    slot->table.wait = spy_wait;
    return true;
  }
  return false;
}

/* Each counted call reads the clock twice; about one reading of the two counts as the library's. */
static double clock_ns(void) {
  const uint32_t times = 1000;
  const uint64_t begin_ns = tm_now_ns();
  for (uint32_t i = 0; i < times; i++) (void)tm_now_ns();
  return (double)(tm_now_ns() - begin_ns) / times;
}

static bool measure(tm_context *context, const char *what, const char *backend, uint32_t nodes, uint64_t elements) {
  const char *const names[] = { backend }, *const others[] = { "reference" };
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N4, .wait_for_prepare = 1,
                                    .devices = names, .device_count = 1, .excluded_devices = others, .excluded_device_count = 1 };
  bench_chain chain = { .context = context, .node_count = nodes };
  double core[ROUNDS], inside[ROUNDS], reading[ROUNDS];
  allow_idle_devices(context);
  if (!bench_chain_open(&chain, elements, &options)) return false;
  for (uint32_t i = 0; i < WARM_UP; i++)
    if (!bench_chain_run(&chain)) return false;
  for (uint32_t i = 0; i < ROUNDS; i++) {
    reading[i] = clock_ns();
    spy.inside_ns = spy.calls = 0;
    const uint64_t begin_ns = tm_now_ns();
    if (!bench_chain_run(&chain)) return false;
    const double whole_ns = (double)(tm_now_ns() - begin_ns);
    core[i] = (whole_ns - (double)spy.inside_ns - (double)spy.calls * reading[i]) / nodes;
    inside[i] = (double)spy.inside_ns / nodes;
  }
  printf("%-32s %8.1f ns an operation, beside %.3f calls that take %.1f ns   goal: 1000 at most\n", what,
         bench_median(core, ROUNDS), (double)spy.calls / nodes, bench_median(inside, ROUNDS));
  bench_chain_close(&chain);
  return true;
}

static bool measure_in(const char *what, const char *path, const char *backend, fake_control *control, uint32_t nodes,
                       uint64_t elements) {
  const tm_named_pointer pointer = { backend, FAKE_CONTROL_KEY, control };
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 1, .plugin_paths = &path,
                                       .plugin_path_count = 1, .pointers = &pointer, .pointer_count = control != NULL };
  tm_context *context = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_context_create(&options, &context, &error) != TM_OK) return fprintf(stderr, "%s\n", error.text), false;
  const bool is_there = put_between(context, backend);
  if (!is_there) fprintf(stderr, "%s: there is no such backend in %s\n", backend, path);
  const bool is_measured = is_there && measure(context, what, backend, nodes, elements);
  tm_context_destroy(context);
  return is_measured;
}

int main(int argc, char **argv) {
  const uint32_t nodes = (uint32_t)bench_option(argc, argv, "nodes", 1000);
  const uint64_t elements = bench_option(argc, argv, "elements", 8);
  const char *plugin = NULL, *backend = NULL;
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--plugin=", 9) == 0) plugin = argv[i] + 9;
    if (strncmp(argv[i], "--backend=", 10) == 0) backend = argv[i] + 10;
  }
  if (nodes == 0 || (plugin == NULL) != (backend == NULL))
    return fprintf(stderr, "usage: bench_core_time [--nodes=N] [--elements=N] [--plugin=PATH --backend=NAME]\n"), 2;
  printf("the library's own time in a replay of %u additions, medians of %u rounds\n", nodes, ROUNDS);
  if (plugin != NULL) return measure_in(backend, plugin, backend, NULL, nodes, elements) ? 0 : 1;
  _Atomic uint64_t nothing_happens = 0;
  fake_control near = { .is_asynchronous = 1, .clock_ns = &nothing_happens, .uuid = { { 1 } } }, far = near;
  far.memory = (tm_identity){ { 5 } };
  const bool is_near = measure_in("a fake in the host's memory", BENCH_FAKES "/fake_a.so", "fake_a", &near, nodes, elements);
  return is_near && measure_in("a fake with memory of its own", BENCH_FAKES "/fake_a.so", "fake_a", &far, nodes, elements) ? 0 : 1;
}
