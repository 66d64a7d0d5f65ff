/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library adds to one small operation whose signature it knows: tm_run beside the bare launch of the very kernel
 * that tm_run chose, in turns.   bench_overhead [--elements=N] [--calls=N] [--threads=N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/context.h"
#include "base/clock.h"
#include "bench.h"

#define ROUNDS 41u

typedef struct problem {
  tm_context *context;
  tm_tensor  *inputs[2];
  tm_tensor  *y;
  uint64_t    calls;
} problem;

/* The one placement that has been made: the first run made it. */
static tm_placement *only_placement(tm_context *context) {
  for (uint32_t i = 0; i < context->placements.slot_count; i++)
    if (context->placements.slots[i] != NULL) return context->placements.slots[i];
  return NULL;
}

static double run_calls(const problem *p, const tm_run_options *options) {
  const uint64_t begin = tm_now_ns();
  for (uint64_t i = 0; i < p->calls; i++)
    if (tm_run(p->context, TM_OP_ADD, NULL, 0, p->inputs, 2, &p->y, 1, options, NULL) != TM_OK) return 0;
  return (double)(tm_now_ns() - begin) / (double)p->calls;
}

static double bare_calls(const problem *p) {
  tm_placement *placement = only_placement(p->context);
  const tm_plan_candidate *candidate = &placement->candidates[atomic_load(&placement->chosen)];
  const tm_accelerator_backend_plugin *table = &candidate->device->backend->table;
  const uint64_t bytes = tm_tensor_operand(p->y)->byte_count;
  const tm_binding bindings[3] = { { tm_tensor_data(p->inputs[0]), 0, bytes }, { tm_tensor_data(p->inputs[1]), 0, bytes },
                                   { tm_tensor_data(p->y), 0, bytes } };
  const tm_launch launch = { .struct_size = sizeof launch, .kernel = atomic_load(&candidate->kernel), .bindings = bindings, .binding_count = 3 };
  tm_device *device = atomic_load(&candidate->device->handle);
  const uint64_t begin = tm_now_ns();
  for (uint64_t i = 0; i < p->calls; i++) {
    tm_ticket ticket = { 0, 0, 0 };
    if (table->launch(device, &launch, &ticket) != TM_OK) return 0;
  }
  return (double)(tm_now_ns() - begin) / (double)p->calls;
}

static bool open_problem(problem *p, uint64_t elements, uint32_t threads) {
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = threads };
  tm_error error = { .struct_size = sizeof error };
  tm_status status = tm_context_create(&options, &p->context, &error);
  for (int i = 0; i < 2 && status == TM_OK; i++) status = tm_tensor_create(p->context, TM_FORMAT_F32, 1, &elements, &p->inputs[i], &error);
  if (status == TM_OK) status = tm_tensor_create(p->context, TM_FORMAT_F32, 1, &elements, &p->y, &error);
  if (status != TM_OK) fprintf(stderr, "%s\n", error.text);
  return status == TM_OK;
}

static void close_problem(problem *p) {
  tm_tensor_destroy(p->y);
  tm_tensor_destroy(p->inputs[1]);
  tm_tensor_destroy(p->inputs[0]);
  tm_context_destroy(p->context);
}

int main(int argc, char **argv) {
  problem p = { .calls = bench_option(argc, argv, "calls", 5000) };
  const uint64_t elements = bench_option(argc, argv, "elements", 64);
  if (!open_problem(&p, elements, (uint32_t)bench_option(argc, argv, "threads", 1))) return 1;
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options plain = { .struct_size = sizeof plain, .worst_numerics = TM_NUMERICS_DEFAULT };
  tm_run_options reporting = plain;
  reporting.report = &report;
  double bare[ROUNDS], whole[ROUNDS], reported[ROUNDS], added[ROUNDS];
  (void)run_calls(&p, &plain);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    whole[i] = run_calls(&p, &plain);
    bare[i] = bare_calls(&p);
    reported[i] = run_calls(&p, &reporting);
    added[i] = whole[i] - bare[i];
  }
  printf("add of %llu f32 on %s, %llu calls a round, medians of %u rounds, ns a call\n", (unsigned long long)elements,
         p.context->inventory->devices[report.device]->name, (unsigned long long)p.calls, ROUNDS);
  printf("%-28s %8.0f\n%-28s %8.0f\n%-28s %8.0f\n%-28s %8.0f   goal: 1000 at most\n", "bare launch", bench_median(bare, ROUNDS), "tm_run",
         bench_median(whole, ROUNDS), "tm_run with a report", bench_median(reported, ROUNDS), "added by the library", bench_median(added, ROUNDS));
  close_problem(&p);
  return 0;
}
