/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/explained_schedule.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "solver/flow.h"
#include "solver/timeline.h"

/* Each way to run each node is tried in the whole plan up to so many steps in sum; that is less than a second. */
#define MOST_MOVED_STEPS (UINT64_C(1) << 20)

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to explain a graph"); }

/* What is read where, in the plan that was chosen. */
typedef struct plan_view {
  tm_plan_explanation     *explanation;
  const tm_solver_problem *solver;
  tm_arena                *arena;
  tm_flow                  flow;
  uint32_t                *readings;    /* [value][memory]: nodes that read it there, and the end */
  uint32_t                *copy_of;     /* [value][memory]: of copies */
  uint32_t                *labels;      /* [node] */
  const uint32_t          *order;       /* in which nodes run */
} plan_view;

static const tm_solver_label *label_of(const plan_view *view, uint32_t node) { return &view->solver->labels[view->labels[node]]; }

static uint64_t cell(const plan_view *view, uint32_t value, uint32_t memory) {
  return (uint64_t)value * view->solver->memory_count + memory;
}

/* The memory in which a value comes to be. */
static uint32_t source_of(const plan_view *view, uint32_t value) {
  const tm_solver_value *one = &view->solver->values[value];
  return one->producer == TM_SOLVER_NONE ? one->home : label_of(view, one->producer)->output_memory;
}

static tm_status begin(plan_view *view, tm_error *error) {
  const tm_solver_problem *solver = view->solver;
  uint64_t cells;
  if (!tm_checked_mul(solver->value_count, solver->memory_count, &cells)) return no_memory(error);
  TM_TRY(tm_flow_init(&view->flow, solver, view->arena, error));
  view->labels = tm_arena_calloc(view->arena, solver->op_count, sizeof *view->labels);
  view->readings = tm_arena_calloc(view->arena, cells, sizeof *view->readings);
  view->copy_of = tm_arena_calloc(view->arena, cells, sizeof *view->copy_of);
  view->order = view->explanation->choice.order;
  if (view->labels == NULL || view->readings == NULL || view->copy_of == NULL) return no_memory(error);
  for (uint32_t node = 0; node < solver->op_count; node++) view->labels[node] = view->explanation->nodes[node].chosen;
  for (uint32_t node = 0; node < solver->op_count; node++) {
    const tm_solver_op *op = &solver->ops[node];
    for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++)
      view->readings[cell(view, solver->inputs[i], label_of(view, node)->input_memory)]++;
  }
  for (uint32_t value = 0; value < solver->value_count; value++)
    if (solver->values[value].wanted != TM_SOLVER_NONE) view->readings[cell(view, value, solver->values[value].wanted)]++;
  return TM_OK;
}

/* ---- copies ---- */

static uint32_t first_reader(const plan_view *view, uint32_t value, uint32_t memory) {
  for (uint32_t i = view->flow.first_reader[value]; i < view->flow.first_reader[value + 1]; i++)
    if (label_of(view, view->flow.readers[i])->input_memory == memory) return view->flow.readers[i];
  return TM_NO_NODE;
}

static bool is_copied(const plan_view *view, uint32_t value, uint32_t memory) {
  return memory != source_of(view, value) && view->readings[cell(view, value, memory)] != 0;
}

static void add_copy(const plan_view *view, uint32_t value, uint32_t to) {
  tm_plan_explanation *explanation = view->explanation;
  const uint32_t producer = view->solver->values[value].producer, from = source_of(view, value);
  tm_plan_copy *copy = &explanation->copies[explanation->copy_count];
  *copy = (tm_plan_copy){
    .struct_size = sizeof *copy,
    .value = explanation->problem.graph_values[value],
    .from = from,
    .to = to,
    .producer = producer == TM_SOLVER_NONE ? TM_NO_NODE : producer,
    .reader = first_reader(view, value, to),
    .bytes = view->solver->values[value].bytes,
    .ns = tm_solver_copy_ns(view->solver, value, from, to),
  };
  view->copy_of[cell(view, value, to)] = explanation->copy_count++;
  explanation->copy_ns += copy->ns;
  if (producer == TM_SOLVER_NONE) explanation->given_copy_ns += copy->ns;
}

static tm_status list_copies(const plan_view *view, tm_error *error) {
  tm_plan_explanation *explanation = view->explanation;
  const tm_solver_problem *solver = view->solver;
  uint64_t count = 0;
  for (uint32_t value = 0; value < solver->value_count; value++)
    for (uint32_t memory = 0; memory < solver->memory_count; memory++) count += is_copied(view, value, memory);
  if (count >= TM_SOLVER_NONE) return no_memory(error);
  explanation->copies = tm_arena_calloc(&explanation->arena, count, sizeof *explanation->copies);
  if (explanation->copies == NULL) return no_memory(error);
  for (uint32_t value = 0; value < solver->value_count; value++)
    for (uint32_t memory = 0; memory < solver->memory_count; memory++)
      if (is_copied(view, value, memory)) add_copy(view, value, memory);
  return TM_OK;
}

static tm_status list_links(const plan_view *view, tm_error *error) {
  tm_plan_explanation *explanation = view->explanation;
  const uint64_t memories = view->solver->memory_count;
  tm_plan_link *all = tm_arena_calloc(view->arena, memories * memories, sizeof *all);
  explanation->links = tm_arena_calloc(&explanation->arena, memories * memories, sizeof *explanation->links);
  if (all == NULL || explanation->links == NULL) return no_memory(error);
  for (uint32_t i = 0; i < explanation->copy_count; i++) {
    const tm_plan_copy *copy = &explanation->copies[i];
    tm_plan_link *link = &all[copy->from * memories + copy->to];
    link->copy_count++;
    link->bytes = copy->bytes > UINT64_MAX - link->bytes ? UINT64_MAX : link->bytes + copy->bytes;
    link->ns += copy->ns;
  }
  for (uint64_t i = 0; i < memories * memories; i++) {
    if (all[i].copy_count == 0) continue;
    all[i].struct_size = sizeof all[i];
    all[i].from = (uint32_t)(i / memories);
    all[i].to = (uint32_t)(i % memories);
    explanation->links[explanation->link_count++] = all[i];
  }
  return TM_OK;
}

/* ---- one node elsewhere ---- */

static uint64_t copy_in_ns(const plan_view *view, uint32_t node, uint32_t memory, uint64_t *out_bytes) {
  const tm_solver_op *op = &view->solver->ops[node];
  const uint32_t is_there_now = label_of(view, node)->input_memory == memory;
  uint64_t ns = 0;
  *out_bytes = 0;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t value = view->solver->inputs[i], source = source_of(view, value);
    if (source == memory || view->readings[cell(view, value, memory)] != is_there_now) continue;
    ns += tm_solver_copy_ns(view->solver, value, source, memory);
    *out_bytes = tm_solver_add(*out_bytes, view->solver->values[value].bytes);
  }
  return ns;
}

static uint64_t copy_out_ns(const plan_view *view, uint32_t node, uint32_t memory, uint64_t *out_bytes) {
  uint64_t ns = 0;
  *out_bytes = 0;
  for (uint32_t i = view->flow.first_output[node]; i < view->flow.first_output[node + 1]; i++) {
    const uint32_t value = view->flow.outputs[i];
    *out_bytes = tm_solver_add(*out_bytes, view->solver->values[value].bytes);
    for (uint32_t to = 0; to < view->solver->memory_count; to++)
      if (to != memory && view->readings[cell(view, value, to)] != 0) ns += tm_solver_copy_ns(view->solver, value, memory, to);
  }
  return ns;
}

/* A price is for a MiB; both fit into 60 bits. */
static uint64_t worth_ns(uint64_t ns_per_mib, uint64_t bytes) {
  const uint64_t whole = bytes >> 20, rest = bytes & ((1u << 20) - 1);
  uint64_t ns;
  if (!tm_checked_mul(whole, ns_per_mib, &ns)) return TM_SOLVER_MOST_NS;
  return tm_solver_add(ns, ns_per_mib / (1u << 20) * rest);
}

static void weigh_labels(const plan_view *view, uint32_t node) {
  tm_plan_explanation *explanation = view->explanation;
  const tm_solver_op *op = &view->solver->ops[node];
  for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
    const tm_solver_label *how = &view->solver->labels[i];
    tm_explained_label *label = &explanation->labels[i];
    uint64_t in_bytes, out_bytes;
    label->copy_in_ns = copy_in_ns(view, node, how->input_memory, &in_bytes);
    label->copy_out_ns = copy_out_ns(view, node, how->output_memory, &out_bytes);
    label->total_ns = tm_label_price_sum(&label->price) + label->copy_in_ns + label->copy_out_ns;
    label->memory_ns =
        tm_solver_add(worth_ns(explanation->memory_prices[how->input_memory], in_bytes),
                      worth_ns(explanation->memory_prices[how->output_memory], tm_solver_add(out_bytes, how->workspace_bytes)));
  }
}

/* ---- one after the other ---- */

static uint64_t take_time(uint64_t at_ns, tm_plan_copy *copy) {
  copy->start_ns = at_ns;
  return copy->end_ns = at_ns + copy->ns;
}

/* Right before the node that needs them first; what only the end needs, then. */
static void run_in_turn(const plan_view *view) {
  tm_plan_explanation *explanation = view->explanation;
  const tm_solver_problem *solver = view->solver;
  uint64_t at_ns = 0;
  for (uint32_t node = 0; node < solver->op_count; node++) {
    const tm_solver_op *op = &solver->ops[node];
    const uint32_t memory = label_of(view, node)->input_memory;
    for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
      if (!is_copied(view, solver->inputs[i], memory)) continue;
      tm_plan_copy *copy = &explanation->copies[view->copy_of[cell(view, solver->inputs[i], memory)]];
      if (copy->reader == node) at_ns = take_time(at_ns, copy);
    }
    explanation->nodes[node].start_ns = at_ns;
    explanation->nodes[node].end_ns = at_ns += label_of(view, node)->cost_ns;
    explanation->nodes[node].is_critical = 1;
  }
  for (uint32_t i = 0; i < explanation->copy_count; i++)
    if (explanation->copies[i].reader == TM_NO_NODE) at_ns = take_time(at_ns, &explanation->copies[i]);
}

static void price_moves(const plan_view *view) {
  tm_plan_explanation *explanation = view->explanation;
  for (uint32_t node = 0; node < view->solver->op_count; node++) {
    const tm_solver_op *op = &view->solver->ops[node];
    const uint64_t now_ns = explanation->labels[view->labels[node]].total_ns;
    for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
      explanation->labels[i].wait_ns = 0;
      explanation->labels[i].moved_ns = explanation->sum_ns - now_ns + explanation->labels[i].total_ns;
    }
  }
}

/* ---- at the same time ---- */

static tm_status simulate(const plan_view *view, tm_timeline *out_timeline, tm_error *error) {
  return tm_timeline_simulate(view->solver, view->labels, view->order, view->explanation->memory, out_timeline, error);
}

/* When a value is in that memory; of the plan that was chosen that is known, of others copies are searched. */
static uint64_t arrival_ns(const plan_view *view, const tm_timeline *timeline, uint32_t value, uint32_t memory, bool is_chosen) {
  const uint32_t producer = view->solver->values[value].producer;
  if (source_of(view, value) == memory) return producer == TM_SOLVER_NONE ? 0 : timeline->op_end_ns[producer];
  if (is_chosen) return view->explanation->copies[view->copy_of[cell(view, value, memory)]].end_ns;
  for (uint32_t i = 0; i < timeline->copy_count; i++)
    if (timeline->copies[i].value == value && timeline->copies[i].to == memory) return timeline->copies[i].end_ns;
  return 0;
}

/* From when the operands are there to when it starts. */
static uint64_t wait_ns(const plan_view *view, const tm_timeline *timeline, uint32_t node, bool is_chosen) {
  const tm_solver_op *op = &view->solver->ops[node];
  const uint64_t start_ns = timeline->op_start_ns[node];
  uint64_t ready_ns = 0;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++)
    ready_ns =
        tm_max_u64(ready_ns, arrival_ns(view, timeline, view->solver->inputs[i], label_of(view, node)->input_memory, is_chosen));
  return start_ns - tm_min_u64(ready_ns, start_ns);
}

static void take_copies(const plan_view *view, const tm_timeline *timeline) {
  for (uint32_t i = 0; i < timeline->copy_count; i++) {
    const tm_timeline_copy *from = &timeline->copies[i];
    tm_plan_copy *copy = &view->explanation->copies[view->copy_of[cell(view, from->value, from->to)]];
    copy->start_ns = from->start_ns;
    copy->end_ns = from->end_ns;
  }
}

static tm_status take_timeline(const plan_view *view, const tm_timeline *timeline, tm_error *error) {
  tm_plan_explanation *explanation = view->explanation;
  explanation->critical = tm_arena_calloc(&explanation->arena, timeline->critical_count, sizeof *explanation->critical);
  if (explanation->critical == NULL) return no_memory(error);
  take_copies(view, timeline);
  for (uint32_t node = 0; node < view->solver->op_count; node++) {
    explanation->nodes[node].start_ns = timeline->op_start_ns[node];
    explanation->nodes[node].end_ns = timeline->op_end_ns[node];
    explanation->labels[view->labels[node]].wait_ns = wait_ns(view, timeline, node, true);
    explanation->labels[view->labels[node]].moved_ns = timeline->makespan_ns;
  }
  for (uint32_t i = 0; i < timeline->critical_count; i++) {
    const tm_timeline_step *step = &timeline->critical[i];
    const tm_timeline_copy *copy = step->is_copy ? &timeline->copies[step->number] : NULL;
    const uint32_t index = copy == NULL ? 0 : view->copy_of[cell(view, copy->value, copy->to)];
    if (copy == NULL) explanation->nodes[step->number].is_critical = 1;
    explanation->critical[i] = (tm_critical_step){
      .struct_size = sizeof(tm_critical_step),
      .node = copy == NULL ? step->number : TM_NO_NODE,
      .copy = index,
      .ns = copy == NULL ? label_of(view, step->number)->cost_ns : explanation->copies[index].ns,
    };
  }
  explanation->critical_count = timeline->critical_count;
  return TM_OK;
}

/* The node runs with `label` in the view meanwhile. */
static tm_status try_move(const plan_view *view, uint32_t node, uint32_t label, tm_error *error) {
  tm_timeline timeline;
  const uint32_t chosen = view->labels[node];
  view->labels[node] = label;
  const tm_status status = simulate(view, &timeline, error);
  if (status == TM_OK) {
    view->explanation->labels[label].moved_ns = timeline.makespan_ns;
    view->explanation->labels[label].wait_ns = wait_ns(view, &timeline, node, false);
    tm_timeline_deinit(&timeline);
  }
  view->labels[node] = chosen;
  return status;
}

static tm_status try_moves(const plan_view *view, tm_error *error) {
  const bool can = (uint64_t)view->solver->op_count * view->solver->label_count <= MOST_MOVED_STEPS;
  for (uint32_t node = 0; node < view->solver->op_count; node++) {
    const tm_solver_op *op = &view->solver->ops[node];
    for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
      tm_explained_label *label = &view->explanation->labels[i];
      if (i == view->labels[node]) continue;
      label->moved_ns = label->wait_ns = TM_NEVER_NS;
      if (can) TM_TRY(try_move(view, node, i, error));
    }
  }
  return TM_OK;
}

static tm_status run_at_once(const plan_view *view, tm_error *error) {
  tm_timeline timeline;
  TM_TRY(simulate(view, &timeline, error));
  view->explanation->total_ns = timeline.makespan_ns;
  tm_status status = take_timeline(view, &timeline, error);
  tm_timeline_deinit(&timeline);
  return status == TM_OK ? try_moves(view, error) : status;
}

/* ---- all ---- */

static tm_status make(const plan_view *view, tm_error *error) {
  tm_plan_explanation *explanation = view->explanation;
  TM_TRY(list_copies(view, error));
  TM_TRY(list_links(view, error));
  for (uint32_t node = 0; node < view->solver->op_count; node++) {
    weigh_labels(view, node);
    explanation->node_ns += label_of(view, node)->cost_ns;
  }
  explanation->total_ns = explanation->sum_ns = explanation->node_ns + explanation->copy_ns;
  if (explanation->choice.overlaps != 0) return run_at_once(view, error);
  run_in_turn(view);
  price_moves(view);
  return TM_OK;
}

tm_status tm_explained_schedule_make(tm_plan_explanation *explanation, tm_error *error) {
  tm_arena arena;
  tm_arena_init(&arena, explanation->memory);
  plan_view view = { .explanation = explanation, .solver = &explanation->problem.solver, .arena = &arena };
  tm_status status = begin(&view, error);
  if (status == TM_OK) status = make(&view, error);
  tm_arena_deinit(&arena);
  return status;
}
