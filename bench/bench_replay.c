/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a replay adds to each of many tiny operations on devices that compute within their calls: tm_plan_run beside a bare loop
 * over the same launches, in turns; and what one operation by itself takes through tm_run, and as a plan of one node.
 *     bench_replay [--nodes=N] [--elements=N] [--threads=N]
 */
#include <stdio.h>

#include "base/clock.h"
#include "bench.h"
#include "execute/plan.h"

#define ROUNDS 101u
#define WARM_UP 80u

typedef struct problem {
  tm_context *context;
  tm_graph   *graph;
  tm_plan    *plan;
  tm_tensor  *x;
  tm_tensor  *y;
  uint32_t    node_count;
  uint64_t    planned_ns;
} problem;

static bool make_graph(problem *p, uint64_t elements, tm_error *error) {
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 1, .dims = { elements } };
  uint32_t first, value;
  if (tm_graph_create(p->context, &p->graph, error) != TM_OK || tm_graph_input(p->graph, "x", &layout, &first, error) != TM_OK)
    return false;
  value = first;
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t inputs[2] = { value, first };
    if (tm_graph_node(p->graph, NULL, TM_OP_ADD, NULL, 0, inputs, 2, NULL, 1, &value, error) != TM_OK) return false;
  }
  return tm_graph_output(p->graph, "y", value, error) == TM_OK;
}

static bool open_problem(problem *p, uint64_t elements) {
  tm_error error = { .struct_size = sizeof error };
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1 };
  const bool is_open = tm_tensor_create(p->context, TM_FORMAT_F32, 1, &elements, &p->x, &error) == TM_OK &&
                       tm_tensor_create(p->context, TM_FORMAT_F32, 1, &elements, &p->y, &error) == TM_OK &&
                       make_graph(p, elements, &error);
  const uint64_t begin = tm_now_ns();
  const bool is_planned = is_open && tm_plan_create(p->graph, &options, &p->plan, &error) == TM_OK;
  p->planned_ns = tm_now_ns() - begin;
  if (!is_planned) fprintf(stderr, "%s\n", error.text);
  return is_planned;
}

static void close_problem(problem *p) {
  tm_plan_destroy(p->plan);
  tm_graph_destroy(p->graph);
  tm_tensor_destroy(p->y);
  tm_tensor_destroy(p->x);
}

static bool run_plan(const problem *p) { return tm_plan_run(p->plan, &p->x, 1, &p->y, 1, NULL, NULL) == TM_OK; }

static double replay(const problem *p, uint32_t times) {
  const uint64_t begin = tm_now_ns();
  for (uint32_t i = 0; i < times; i++)
    if (!run_plan(p)) return 0;
  return (double)(tm_now_ns() - begin) / times / p->node_count;
}

static double bare(const problem *p, uint32_t times) {
  const tm_plan_program *program = &p->plan->program;
  const tm_plan_queue *queue = &program->queues[program->actions[0].place];
  const uint64_t begin = tm_now_ns();
  for (uint32_t k = 0; k < times; k++)
    for (uint32_t i = 0; i < program->launch_count; i++) {
      tm_ticket ticket = { 0, 0, 0 };
      if (queue->launch(queue->device, &program->launches[i], &ticket) != TM_OK) return 0;
    }
  return (double)(tm_now_ns() - begin) / times / p->node_count;
}

static double single(const problem *p, uint32_t times) {
  tm_tensor *const inputs[2] = { p->x, p->x };
  const uint64_t begin = tm_now_ns();
  for (uint32_t i = 0; i < times; i++)
    if (tm_run(p->context, TM_OP_ADD, NULL, 0, inputs, 2, &p->y, 1, NULL, NULL) != TM_OK) return 0;
  return (double)(tm_now_ns() - begin) / times;
}

static uint64_t plan_bytes(const tm_plan_program *p) {
  return p->step_count * sizeof *p->steps + p->action_count * sizeof *p->actions +
         p->location_count * sizeof *p->locations + p->slot_count * sizeof *p->slots + p->operand_count * sizeof *p->operands +
         p->patch_count * sizeof *p->patches + p->launch_count * sizeof *p->launches + p->binding_count * sizeof *p->bindings +
         p->problem.graph->value_count * (sizeof *p->roots + sizeof *p->offsets);
}

int main(int argc, char **argv) {
  const uint64_t elements = bench_option(argc, argv, "elements", 8);
  const tm_context_options options = { .struct_size = sizeof options,
                                       .thread_count = (uint32_t)bench_option(argc, argv, "threads", 1) };
  problem many = { .node_count = (uint32_t)bench_option(argc, argv, "nodes", 1000) }, one = { .node_count = 1 };
  if (tm_context_create(&options, &many.context, NULL) != TM_OK) return 1;
  one.context = many.context;
  if (!open_problem(&many, elements) || !open_problem(&one, elements)) return 1;
  for (uint32_t i = 0; i < WARM_UP; i++) (void)(run_plan(&many) && run_plan(&one) && single(&one, 1) > 0);
  double whole[ROUNDS], loop[ROUNDS], added[ROUNDS], alone[ROUNDS], run[ROUNDS];
  for (uint32_t i = 0; i < ROUNDS; i++) {
    whole[i] = replay(&many, 5);
    loop[i] = bare(&many, 5);
    added[i] = whole[i] - loop[i];
    alone[i] = replay(&one, 1000);
    run[i] = single(&one, 1000);
  }
  const tm_plan_program *program = &many.plan->program;
  printf("%u nodes of %llu f32 on %s, medians of %u rounds, ns an operation\n", many.node_count, (unsigned long long)elements,
         program->problem.placements[program->steps[0].placement]->candidates[program->steps[0].candidate].device->name, ROUNDS);
  printf("%-32s %8.1f\n%-32s %8.1f\n%-32s %8.1f   goal: 15 at most\n", "bare loop", bench_median(loop, ROUNDS), "replay",
         bench_median(whole, ROUNDS), "added by the replay", bench_median(added, ROUNDS));
  printf("%-32s %8.1f\n%-32s %8.1f\n", "tm_run of one", bench_median(run, ROUNDS), "tm_plan_run of one",
         bench_median(alone, ROUNDS));
  printf("%-32s %8.1f\n", "planning", (double)many.planned_ns / many.node_count);
  printf("%-32s %8.1f   goal: 256 at most\n", "bytes of plan a node", (double)plan_bytes(program) / many.node_count);
  close_problem(&one);
  close_problem(&many);
  tm_context_destroy(many.context);
  return 0;
}
