/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a replay adds to each of many tiny operations on devices that compute within their calls: tm_plan_run beside a bare loop
 * over the same launches, in turns; what one operation by itself takes through tm_run, and as a plan of one node; and what as
 * many tiny tasks take in StarPU, where that is installed.
 *     bench_replay [--nodes=N] [--elements=N] [--threads=N]
 */
#include <stdio.h>

#include "base/clock.h"
#include "bench.h"
#include "chain.h"
#include "task_peer.h"

#define ROUNDS 101u
#define WARM_UP 80u

static double replay(const bench_chain *p, uint32_t times) {
  const uint64_t begin = tm_now_ns();
  for (uint32_t i = 0; i < times; i++)
    if (!bench_chain_run(p)) return 0;
  return (double)(tm_now_ns() - begin) / times / p->node_count;
}

static double bare(const bench_chain *p, uint32_t times) {
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

static double single(const bench_chain *p, uint32_t times) {
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

static void show_peer(uint32_t count, uint64_t elements, uint32_t threads) {
  bench_task_peer peer;
  if (!bench_task_peer_measure(count, (uint32_t)elements, threads, ROUNDS, &peer)) {
    printf("StarPU beside it: left out, %s\n", peer.version);
    return;
  }
  printf("StarPU %s beside it, %u tasks, scheduler lws: %.1f where they are independent, %.1f in a chain\n", peer.version, count,
         peer.independent_ns, peer.chained_ns);
}

int main(int argc, char **argv) {
  const uint64_t elements = bench_option(argc, argv, "elements", 8);
  const tm_context_options options = { .struct_size = sizeof options,
                                       .thread_count = (uint32_t)bench_option(argc, argv, "threads", 1) };
  bench_chain many = { .node_count = (uint32_t)bench_option(argc, argv, "nodes", 1000) }, one = { .node_count = 1 };
  if (tm_context_create(&options, &many.context, NULL) != TM_OK) return 1;
  one.context = many.context;
  const tm_plan_options any = { .struct_size = sizeof any, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1 };
  if (!bench_chain_open(&many, elements, &any) || !bench_chain_open(&one, elements, &any)) return 1;
  for (uint32_t i = 0; i < WARM_UP; i++) (void)(bench_chain_run(&many) && bench_chain_run(&one) && single(&one, 1) > 0);
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
  bench_chain_close(&one);
  bench_chain_close(&many);
  tm_context_destroy(many.context);
  show_peer(many.node_count, elements, options.thread_count);
  return 0;
}
