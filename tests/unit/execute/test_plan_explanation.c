/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations of random graphs: that all numbers add up, and that what they say would be is what is. */
#include <stdlib.h>
#include <unistd.h>

#include "schedule/graph_explanation.h"
#include "solver/assignment.h"
#include "solver/timeline.h"
#include "sanitized.h"
#include "unit/execute/lazy_case.h"

#define ANY_OPTIONS { .struct_size = sizeof(tm_plan_options), .worst_numerics = TM_NUMERICS_DEFAULT }

static tm_plan_explanation *explain(tm_graph *graph, const tm_plan_options *options) {
  tm_plan_explanation *explanation = NULL;
  tm_error error = TM_ERROR_INIT;
  if (tm_graph_explain(graph, options, &explanation, &error) != TM_OK) fail_msg("no explanation: %s", error.text);
  return explanation;
}

static tm_plan_summary summary_of(const tm_plan_explanation *explanation) {
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_explanation_summarize(explanation, &summary);
  return summary;
}

static tm_node_candidate candidate_of(const tm_plan_explanation *explanation, uint32_t node, uint32_t index) {
  tm_node_candidate candidate = { .struct_size = sizeof candidate };
  assert_int_equal(tm_plan_explanation_candidate(explanation, node, index, &candidate), TM_OK);
  return candidate;
}

static bool can(const tm_node_candidate *candidate) {
  return candidate->verdict == TM_VERDICT_CHOSEN || candidate->verdict == TM_VERDICT_SLOWER;
}

/* ---- sums ---- */

static void expect_candidates_add_up(const tm_plan_explanation *explanation, uint32_t node, const tm_plan_summary *summary) {
  tm_node_candidate candidate = { .struct_size = sizeof candidate };
  const tm_node_candidate chosen = candidate_of(explanation, node, 0);
  uint32_t count = 0, chosen_count = 0;
  for (; tm_plan_explanation_candidate(explanation, node, count, &candidate) == TM_OK; count++) {
    chosen_count += candidate.verdict == TM_VERDICT_CHOSEN;
    if (!can(&candidate)) continue;
    assert_int_equal(candidate.cost_ns, candidate.run_ns + candidate.lowering_ns + candidate.staging_ns + candidate.setup_share_ns);
    assert_int_equal(candidate.total_ns, candidate.cost_ns + candidate.copy_in_ns + candidate.copy_out_ns);
    assert_true(fabs((double)candidate.run_ns - (double)candidate.declared_ns * candidate.correction) <=
                1 + 1e-9 * (double)candidate.run_ns);
    assert_int_equal(candidate.regret_ns, candidate.forced_ns - summary->least_sum_ns);
    if (summary->overlaps == 0) assert_true(candidate.moved_ns <= summary->sum_ns + candidate.total_ns - chosen.total_ns);
    if (summary->max_memory_bytes == 0) assert_true(candidate.forced_ns <= summary->sum_ns + candidate.total_ns - chosen.total_ns);
  }
  assert_int_equal(chosen_count, 1);
  assert_int_equal(chosen.verdict, TM_VERDICT_CHOSEN);
  tm_node_explanation one = { .struct_size = sizeof one };
  assert_int_equal(tm_plan_explanation_node(explanation, node, &one), TM_OK);
  assert_int_equal(one.candidate_count, count);
  assert_int_equal(one.predicted_ns, chosen.cost_ns);
  assert_int_equal(one.end_ns - one.start_ns, chosen.cost_ns);
  assert_true(one.end_ns <= summary->total_ns);
}

static void expect_copies_add_up(const tm_plan_explanation *explanation, const tm_plan_summary *summary) {
  tm_plan_copy copy = { .struct_size = sizeof copy };
  tm_plan_link link = { .struct_size = sizeof link };
  uint64_t copy_ns = 0, given_ns = 0, link_ns = 0, copy_bytes = 0, link_bytes = 0;
  uint32_t count = 0, link_count = 0;
  for (; tm_plan_explanation_copy(explanation, count, &copy) == TM_OK; count++) {
    copy_ns += copy.ns;
    copy_bytes += copy.bytes;
    if (copy.producer == TM_NO_NODE) given_ns += copy.ns;
    assert_int_equal(copy.end_ns - copy.start_ns, copy.ns);
    assert_int_not_equal(copy.from, copy.to);
  }
  for (uint32_t i = 0; tm_plan_explanation_link(explanation, i, &link) == TM_OK; i++) {
    link_ns += link.ns;
    link_bytes += link.bytes;
    link_count += link.copy_count;
  }
  assert_int_equal(copy_ns, summary->copy_ns);
  assert_int_equal(given_ns, summary->given_copy_ns);
  assert_int_equal(link_ns, summary->copy_ns);
  assert_int_equal(link_bytes, copy_bytes);
  assert_int_equal(link_count, count);
}

static void expect_plan_adds_up(const tm_plan_explanation *explanation) {
  const tm_plan_summary summary = summary_of(explanation);
  uint64_t node_ns = 0, node_and_out_ns = 0, last_ns = 0;
  for (uint32_t node = 0; node < summary.node_count; node++) {
    const tm_node_candidate chosen = candidate_of(explanation, node, 0);
    node_ns += chosen.cost_ns;
    node_and_out_ns += chosen.cost_ns + chosen.copy_out_ns;
    expect_candidates_add_up(explanation, node, &summary);
  }
  expect_copies_add_up(explanation, &summary);
  assert_int_equal(node_ns, summary.node_ns);
  assert_int_equal(summary.sum_ns, summary.node_ns + summary.copy_ns);
  assert_int_equal(summary.sum_ns, node_and_out_ns + summary.given_copy_ns);
  assert_true(summary.total_ns <= summary.sum_ns && summary.least_sum_ns <= summary.sum_ns);
  assert_true(summary.overlaps != 0 || summary.total_ns == summary.sum_ns);
  assert_true(summary.bound_ns <= summary.total_ns);
  const tm_plan_policy *policy = &explanation->policy;
  const bool is_weighted = (policy->latency_permille | policy->throughput_permille | policy->memory_permille) != 0;
  tm_rejected_plan plan = { .struct_size = sizeof plan };
  for (uint32_t i = 0; tm_plan_explanation_rejected(explanation, i, &plan) == TM_OK; i++) {
    assert_true(plan.total_ns >= last_ns && (plan.sum_ns >= summary.least_sum_ns || plan.excess_bytes != 0));
    const bool may_be_less = is_weighted || summary.overlaps != 0 || plan.excess_bytes != 0;
    assert_true(may_be_less || plan.sum_ns >= summary.sum_ns);  /* else it would be the plan */
    last_ns = plan.total_ns;
  }
  tm_critical_step step = { .struct_size = sizeof step };
  uint64_t critical_ns = 0;
  uint32_t step_count = 0;
  for (; tm_plan_explanation_critical(explanation, step_count, &step) == TM_OK; step_count++) critical_ns += step.ns;
  assert_int_equal(step_count != 0, summary.overlaps != 0 && summary.total_ns != 0);
  if (step_count != 0) assert_int_equal(critical_ns, summary.total_ns);
}

/* ---- what would be ---- */

/* With one node moved the whole sum, computed anew, changes by what the explanation says. */
static void expect_moves(const tm_plan_explanation *explanation) {
  const tm_solver_problem *solver = &explanation->problem.solver;
  const tm_plan_summary summary = summary_of(explanation);
  const uint32_t *order = explanation->choice.order;
  uint32_t *labels = calloc(solver->op_count, sizeof *labels);
  assert_true(labels != NULL);
  for (uint32_t i = 0; i < solver->op_count; i++) labels[i] = explanation->nodes[i].chosen;
  for (uint32_t node = 0; node < solver->op_count; node++) {
    const tm_solver_op *op = &solver->ops[node];
    const uint32_t chosen = labels[node];
    for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
      tm_timeline timeline;
      labels[node] = i;
      assert_int_equal(tm_timeline_simulate(solver, labels, order, explanation->memory, &timeline, NULL), TM_OK);
      assert_int_equal(timeline.additive_ns,
                       summary.sum_ns + explanation->labels[i].total_ns - explanation->labels[chosen].total_ns);
      if (summary.overlaps != 0) assert_int_equal(explanation->labels[i].moved_ns, timeline.makespan_ns);
      tm_timeline_deinit(&timeline);
    }
    labels[node] = chosen;
  }
  free(labels);
}

/* With one label forced on its node the best sum, found anew, is what the explanation says. */
static void expect_forced(const tm_plan_explanation *explanation) {
  tm_solver_problem solver = explanation->problem.solver;
  tm_solver_label *labels = calloc(solver.label_count, sizeof *labels);
  const tm_assignment_options without = { .without_marginals = true };
  assert_non_null(labels);
  for (uint32_t node = 0; node < solver.op_count; node++) {
    const tm_solver_op *op = &solver.ops[node];
    for (uint32_t forced = op->first_label; forced < op->first_label + op->label_count; forced++) {
      tm_assignment assignment;
      memcpy(labels, explanation->problem.solver.labels, solver.label_count * sizeof *labels);
      for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++)
        if (i != forced) labels[i].cost_ns = TM_SOLVER_NEVER;
      solver.labels = labels;
      assert_int_equal(tm_assignment_solve(&solver, &without, explanation->memory, &assignment, NULL), TM_OK);
      assert_int_equal(assignment.total_ns, explanation->labels[forced].forced_ns);
      tm_assignment_deinit(&assignment);
    }
  }
  free(labels);
}

/* Where nothing can overlap a move changes the whole by what it changes the sum. */
static void expect_moves_in_turn(const tm_plan_explanation *explanation) {
  const tm_plan_summary summary = summary_of(explanation);
  tm_node_candidate candidate = { .struct_size = sizeof candidate };
  for (uint32_t node = 0; node < summary.node_count; node++) {
    const uint64_t now_ns = candidate_of(explanation, node, 0).total_ns;
    for (uint32_t i = 0; tm_plan_explanation_candidate(explanation, node, i, &candidate) == TM_OK; i++)
      if (can(&candidate)) assert_int_equal(candidate.moved_ns, summary.sum_ns + candidate.total_ns - now_ns);
  }
}

/* Where all is on one device nothing is done at the same time, though it could be; and what was never measured spreads by nothing. */
static void what_does_not_overlap_is_not_said_to(void **state) {
  (void)state;
  const lazy_control controls[] = { { .cost_ns = 1000, .is_host = 1 }, { .cost_ns = 500000000 }, { .cost_ns = 500000000 } };
  lazy_case machine = { .context = NULL };
  memcpy(machine.controls, controls, sizeof controls);
  lazy_case_open(&machine);
  const tm_plan_options options = LAZY_OPTIONS;
  tm_graph *graph = NULL;
  uint32_t value;
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &value, NULL), TM_OK);
  for (uint32_t i = 0; i < 5; i++) value = plan_add_node(graph, TM_OP_ADD, value, value);
  assert_int_equal(tm_graph_output(graph, "y", value, NULL), TM_OK);
  tm_plan_explanation *explanation = explain(graph, &options);
  const tm_plan_summary summary = summary_of(explanation);
  tm_critical_step step = { .struct_size = sizeof step };
  assert_int_equal(summary.total_ns, summary.sum_ns);
  assert_int_equal(summary.overlaps, 0);
  assert_int_equal(tm_plan_explanation_critical(explanation, 0, &step), TM_END);
  const tm_node_candidate chosen = candidate_of(explanation, 0, 0);
  assert_int_equal(chosen.sample_count, 0);
  assert_true(chosen.correction_spread == 1);
  tm_plan *plan = lazy_plan(graph, &options);
  tm_plan_description description = { .struct_size = sizeof description };
  tm_plan_describe(plan, &description);
  assert_int_equal(description.overlaps, 0);
  tm_plan_destroy(plan);
  tm_plan_explanation_destroy(explanation);
  tm_graph_destroy(graph);
  lazy_case_close(&machine);
}

static void explain_random_graphs(const lazy_control *controls, uint64_t first_seed, uint32_t count) {
  lazy_case machine = { .context = NULL };
  uint32_t mixed = 0;
  for (uint32_t i = 0; i < LAZY_COUNT; i++) memcpy(&machine.controls[i], &controls[i], sizeof controls[i]);
  lazy_case_open(&machine);
  for (uint64_t seed = first_seed; seed < first_seed + count; seed++) {
    plan_case one;
    const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .repeats = 1 + seed % 50 };
    plan_case_build(&one, machine.context, seed, 1 + (uint32_t)(seed % 24));
    tm_plan_explanation *explanation = explain(one.graph, &options);
    expect_plan_adds_up(explanation);
    if (controls[0].is_prompt != 0) expect_moves_in_turn(explanation);
    expect_moves(explanation);
    expect_forced(explanation);
    for (uint32_t node = 1; node < summary_of(explanation).node_count; node++)
      mixed += candidate_of(explanation, node, 0).device != candidate_of(explanation, 0, 0).device;
    tm_plan_explanation_destroy(explanation);
    plan_case_destroy(&one);
  }
  assert_true(mixed > count);           /* otherwise there is nothing to add up */
  lazy_case_close(&machine);
}

static void all_adds_up_where_things_overlap(void **state) {
  (void)state;
  const lazy_control controls[] = { { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 1, .setup_ns = 100000 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 2, .refused_op = TM_OP_MATMUL },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 3, .is_host = 1 } };
  explain_random_graphs(controls, 100, TM_WHOLE_OR_PART(60, 20));
}

static void all_adds_up_where_nothing_does(void **state) {
  (void)state;
  const lazy_control controls[] = {
      {.cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 1, .setup_ns = 100000, .is_prompt = 1},
      {.cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 2, .is_prompt = 1, .granule = 12},
      {.cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 3, .is_prompt = 1, .is_host = 1}};
  explain_random_graphs(controls, 300, TM_WHOLE_OR_PART(60, 20));
}

/* ---- requirements ---- */

static const lazy_control two_ways[LAZY_COUNT] = {
    {.cost_ns = 1000, .cost_spread_ns = 3000, .cost_seed = 7, .is_prompt = 1, .is_host = 1},
    {.cost_ns = 1000, .setup_ns = 5000000, .is_prompt = 1, .is_host = 1},
    {.cost_ns = 1000000, .is_prompt = 1, .is_host = 1}};

static void open_machine(lazy_case *machine, const lazy_control *controls) {
  memset(machine, 0, sizeof *machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) memcpy(&machine->controls[i], &controls[i], sizeof controls[i]);
  lazy_case_open(machine);
}

/* A plan with the changed options is what the explanation said that it would be. */
static void expect_change(const plan_case *one, const tm_plan_explanation *explanation, uint32_t index,
                          const tm_plan_change *change) {
  tm_plan_options options = ANY_OPTIONS;
  if (change->kind == TM_CHANGE_NUMERICS) options.worst_numerics = (uint32_t)change->value;
  if (change->kind == TM_CHANGE_REPEATS) options.repeats = change->value;
  tm_plan_explanation *then = explain(one->graph, &options);
  const tm_plan_summary summary = summary_of(then);
  uint32_t moved = 0;
  assert_int_equal(summary.total_ns, change->total_ns);
  for (uint32_t node = 0; node < summary.node_count; node++) {
    tm_changed_node place = { .struct_size = sizeof place };
    const tm_node_candidate chosen = candidate_of(then, node, 0);
    assert_int_equal(tm_plan_explanation_changed_node(explanation, index, node, &place), TM_OK);
    assert_int_equal(place.device, chosen.device);
    assert_string_equal(place.lowering, chosen.lowering);
    moved += place.moves;
  }
  assert_int_equal(moved, change->moved_count);
  tm_plan_explanation_destroy(then);
}

static void changes_are_what_they_would_be(void **state) {
  (void)state;
  lazy_case machine;
  plan_case one;
  const tm_plan_options options = ANY_OPTIONS;
  uint32_t count = 0, moving = 0;
  open_machine(&machine, two_ways);
  plan_case_build(&one, machine.context, 5, 20);
  tm_plan_explanation *explanation = explain(one.graph, &options);
  tm_plan_change change = { .struct_size = sizeof change };
  for (; tm_plan_explanation_change(explanation, count, &change) == TM_OK; count++) {
    assert_int_equal(change.is_possible, 1);
    moving += change.moved_count != 0;
    expect_change(&one, explanation, count, &change);
  }
  assert_true(count > 8 && moving != 0 && moving < count);
  tm_plan_explanation_destroy(explanation);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* The device with a set-up gets what it does not have as soon as it runs often enough: that is named, and the least number. */
static void the_requirement_that_moves_a_node_is_named(void **state) {
  (void)state;
  lazy_case machine;
  plan_case one;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .repeats = 10 };
  open_machine(&machine, two_ways);
  plan_case_build(&one, machine.context, 5, 1);
  tm_plan_explanation *explanation = explain(one.graph, &options);
  tm_node_explanation node = { .struct_size = sizeof node };
  tm_plan_change change = { .struct_size = sizeof change };
  assert_int_equal(tm_plan_explanation_node(explanation, 0, &node), TM_OK);
  for (uint32_t i = 0; i < node.candidate_count; i++) {
    const tm_node_candidate candidate = candidate_of(explanation, 0, i);
    if (strcmp(candidate.device_name, "lazy_b:0") != 0) continue;
    assert_int_equal(candidate.setup_ns, 5000000);
    assert_int_equal(candidate.setup_share_ns, 500000);
    if (candidate.change == TM_NO_CHANGE) continue;
    assert_int_equal(tm_plan_explanation_change(explanation, candidate.change, &change), TM_OK);
    assert_int_equal(change.kind, TM_CHANGE_REPEATS);
    assert_true(change.value > 10);
  }
  tm_plan_explanation_destroy(explanation);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static void excluded_devices_are_told_of(void **state) {
  (void)state;
  static const char *const excluded[] = { "lazy_a" };
  lazy_case machine;
  plan_case one;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .excluded_devices = excluded,
                                    .excluded_device_count = 1 };
  const lazy_control controls[LAZY_COUNT] = { { .cost_ns = 1 }, { .cost_ns = 100000 }, { .cost_ns = 100000 } };
  open_machine(&machine, controls);
  plan_case_build(&one, machine.context, 9, 6);
  tm_plan_explanation *explanation = explain(one.graph, &options);
  tm_plan_change change = { .struct_size = sizeof change };
  uint32_t index = 0, found = 0;
  for (; tm_plan_explanation_change(explanation, index, &change) == TM_OK && found == 0; index++)
    found = change.kind == TM_CHANGE_ALLOWED;
  assert_int_equal(found, 1);
  assert_string_equal(change.device_name, "lazy_a:0");
  for (uint32_t i = 0; i < 4; i++) {
    tm_node_candidate candidate = { .struct_size = sizeof candidate };
    if (tm_plan_explanation_candidate(explanation, 0, i, &candidate) != TM_OK) break;
    if (strcmp(candidate.device_name, "lazy_a:0") == 0) assert_int_equal(candidate.verdict, TM_VERDICT_EXCLUDED);
  }
  tm_plan_explanation_destroy(explanation);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* ---- budgets ---- */

static void memory_has_a_price_where_it_is_short(void **state) {
  (void)state;
  lazy_case machine;
  plan_case one;
  tm_plan_options options = ANY_OPTIONS;
  const lazy_control controls[LAZY_COUNT] = {
      {.cost_ns = 1, .is_prompt = 1}, {.cost_ns = 90000000, .is_prompt = 1}, {.cost_ns = 90000000, .is_prompt = 1}};
  open_machine(&machine, controls);
  plan_case_build(&one, machine.context, 13, 24);
  tm_plan_explanation *explanation = explain(one.graph, &options);
  tm_explained_memory memory = { .struct_size = sizeof memory };
  uint64_t peak_bytes = 0;
  uint32_t priced = 0;
  for (uint32_t i = 0; tm_plan_explanation_memory(explanation, i, &memory) == TM_OK; i++) {
    assert_int_equal(memory.ns_per_mib, 0);
    if (memory.peak_bytes > peak_bytes) peak_bytes = memory.peak_bytes;
  }
  tm_plan_explanation_destroy(explanation);
  for (uint64_t bytes = peak_bytes; bytes != 0; bytes -= bytes / 16 + 1) {
    options.max_memory_bytes = bytes;
    tm_error error = TM_ERROR_INIT;
    const tm_status status = tm_graph_explain(one.graph, &options, &explanation, &error);
    if (status != TM_OK) {
      assert_int_equal(status, TM_ERROR_LIMIT);
      assert_int_not_equal(error.text[0], '\0');
      break;
    }
    expect_plan_adds_up(explanation);
    for (uint32_t i = 0; tm_plan_explanation_memory(explanation, i, &memory) == TM_OK; i++) {
      assert_true(memory.peak_bytes <= bytes);  /* with the constant, which stays where it was copied to */
      priced += memory.ns_per_mib != 0;
      assert_true(memory.ns_per_mib <= summary_of(explanation).total_ns);       /* not what a whole MiB of such would save */
    }
    tm_plan_explanation_destroy(explanation);
  }
  assert_true(priced != 0);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* Whatever asks for it, and however many different questions were asked: a device is opened once. */
static void opening_is_charged_once(void **state) {
  (void)state;
  static const char *const both[] = { "lazy_a", "reference" };
  uint32_t most_used = 0;
  for (uint64_t open_ns = 1000; open_ns <= UINT64_C(1000000000000); open_ns *= 1000) {
    lazy_case machine;
    plan_case one;
    tm_plan_explanation *explanation = NULL;
    tm_error error = TM_ERROR_INIT;
    const lazy_control control = { .cost_ns = 10, .is_host = 1, .is_prompt = 1, .open_ns = open_ns };
    const lazy_control controls[LAZY_COUNT] = { control, control, control };
    open_machine(&machine, controls);
    plan_case_build(&one, machine.context, 91, 30);
    const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .repeats = 1, .devices = both,
                                      .device_count = 2 };
    if (tm_graph_explain(one.graph, &options, &explanation, &error) != TM_OK) fail_msg("%s", error.text);
    expect_plan_adds_up(explanation);
    uint64_t share_ns = 0;
    uint32_t used = 0;
    for (uint32_t node = 0; node < summary_of(explanation).node_count; node++) {
      const tm_node_candidate chosen = candidate_of(explanation, node, 0);
      if (strncmp(chosen.device_name, "lazy", 4) != 0) continue;
      share_ns += chosen.setup_share_ns;
      used++;
    }
    if (used != 0 && (share_ns > open_ns || share_ns + used < open_ns))
      fail_msg("%u nodes bear %llu of %llu ns", used, (unsigned long long)share_ns, (unsigned long long)open_ns);
    if (used > most_used) most_used = used;
    if (open_ns == 1000) assert_true(used > 10);
    if (open_ns > UINT64_C(100000000000)) assert_int_equal(used, 0);
    tm_plan_explanation_destroy(explanation);
    plan_case_destroy(&one);
    lazy_case_close(&machine);
  }
}

static void one_resource_is_kept_to(void **state) {
  (void)state;
  lazy_case machine;
  plan_case one;
  tm_plan_options options = ANY_OPTIONS;
  options.one_resource = 1;
  const lazy_control controls[] = { { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 1 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 2 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 3 } };
  open_machine(&machine, controls);
  plan_case_build(&one, machine.context, 21, 20);
  tm_plan_explanation *explanation = explain(one.graph, &options);
  tm_plan_change change = { .struct_size = sizeof change };
  uint32_t found = 0;
  const tm_plan_summary summary = summary_of(explanation);
  const tm_solver_label *labels = explanation->problem.solver.labels;
  for (uint32_t node = 0; node < summary.node_count; node++)
    assert_int_equal(labels[explanation->nodes[node].chosen].resource, labels[explanation->nodes[0].chosen].resource);
  for (uint32_t i = 0; tm_plan_explanation_change(explanation, i, &change) == TM_OK; i++)
    found += change.kind == TM_CHANGE_RESOURCE;
  assert_int_equal(found, 1);
  assert_int_equal(summary.least_sum_ns, summary.sum_ns);
  tm_plan_explanation_destroy(explanation);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* Chains that end in one sum, of matrices whose memory counts. */
static tm_graph *open_chains(tm_context *context, uint32_t count) {
  static const tm_operand large = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 64, 64 } };
  tm_graph *graph = NULL;
  uint32_t x, sum = 0;
  assert_int_equal(tm_graph_create(context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &large, &x, NULL), TM_OK);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t value = plan_add_node(graph, i % 2 == 0 ? TM_OP_NEG : TM_OP_ABS, x, x);
    for (uint32_t k = 0; k <= i; k++) value = plan_add_node(graph, TM_OP_TANH, value, value);
    sum = i == 0 ? value : plan_add_node(graph, TM_OP_ADD, sum, value);
  }
  assert_int_equal(tm_graph_output(graph, "y", sum, NULL), TM_OK);
  return graph;
}

/* A plan that would not be chosen now takes no less than what no placement takes less than: one that was made where time alone
   counted, or where other things were cheap. */
static void try_pinned(const tm_plan_options *then, const tm_plan_options *now, uint64_t seed, uint32_t *old_count) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/tensormorph-pinned-%ld", (long)getpid());
  for (uint32_t turn = 0; turn < 2; turn++) {
    lazy_case machine = { .context = NULL };
    tm_plan *plan = NULL;
    tm_error error = TM_ERROR_INIT;
    tm_plan_explanation *explanation = NULL;
    for (uint32_t i = 0; i < LAZY_COUNT; i++)
      machine.controls[i] = (lazy_control){ .cost_ns = 200000, .cost_spread_ns = 20000, .is_host = 1,
                                            .cost_seed = seed + (now->one_resource & turn) };
    lazy_case_open(&machine);
    tm_graph *graph = open_chains(machine.context, 2 + (uint32_t)seed % 5);
    if (turn == 0) {
      plan = lazy_plan(graph, then);
      assert_int_equal(tm_plan_save(plan, path, NULL), TM_OK);
    } else if (tm_plan_load(graph, path, now, &plan, &error) != TM_OK) {
      fail_msg("%s", error.text);
    }
    assert_int_equal(tm_plan_explain(plan, &explanation, NULL), TM_OK);
    const tm_plan_summary summary = summary_of(explanation);
    if (summary.bound_ns > summary.total_ns)
      fail_msg("seed %llu: %llu ns, of at least %llu", (unsigned long long)seed, (unsigned long long)summary.total_ns,
               (unsigned long long)summary.bound_ns);
    *old_count += summary.is_current == 0;
    tm_plan_explanation_destroy(explanation);
    tm_plan_destroy(plan);
    tm_graph_destroy(graph);
    lazy_case_close(&machine);
  }
  (void)unlink(path);
}

static void nothing_takes_less_than_the_bound(void **state) {
  (void)state;
  uint32_t old_count = 0;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    tm_plan_options then = LAZY_OPTIONS, now = LAZY_OPTIONS;
    then.one_resource = now.one_resource = seed % 4 == 0;
    now.memory_permille = seed % 4 == 0 ? 0 : 1000;
    now.throughput_permille = seed % 4 == 1;
    try_pinned(&then, &now, seed, &old_count);
  }
  assert_true(old_count > 4);
}

/* Where memory counts more than time, that is why, and what would change it. */
static void weights_are_told_of(void **state) {
  (void)state;
  lazy_case machine;
  uint32_t weighed = 0;
  const lazy_control controls[] = { { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 1, .is_prompt = 1 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 2, .is_prompt = 1 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 3, .is_prompt = 1 } };
  open_machine(&machine, controls);
  for (uint64_t seed = 71; seed < 76; seed++) {
    plan_case one;
    tm_plan_options options = ANY_OPTIONS;
    options.memory_permille = 1000;
    plan_case_build(&one, machine.context, seed, 20);
    tm_plan_explanation *explanation = explain(one.graph, &options);
    tm_plan_change change = { .struct_size = sizeof change };
    uint32_t found = 0;
    expect_plan_adds_up(explanation);
    expect_moves(explanation);
    for (uint32_t i = 0; tm_plan_explanation_change(explanation, i, &change) == TM_OK; i++)
      found += change.kind == TM_CHANGE_WEIGHTS;
    assert_int_equal(found, 1);
    for (uint32_t node = 0; node < summary_of(explanation).node_count; node++) {
      tm_node_explanation what = { .struct_size = sizeof what };
      assert_int_equal(tm_plan_explanation_node(explanation, node, &what), TM_OK);
      weighed += what.why == TM_WHY_WEIGHTS;
    }
    tm_plan_explanation_destroy(explanation);
    plan_case_destroy(&one);
  }
  assert_true(weighed != 0);
  lazy_case_close(&machine);
}

/* ---- plans, files ---- */

static void a_plan_is_explained_as_it_is(void **state) {
  (void)state;
  lazy_case machine;
  plan_case one;
  plan_oracle oracle;
  tm_plan_options options = LAZY_OPTIONS;
  const lazy_control controls[] = { { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 1 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 2 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 3, .is_host = 1 } };
  open_machine(&machine, controls);
  plan_case_build(&one, machine.context, 33, 16);
  one.plan = lazy_plan(one.graph, &options);
  tm_plan_explanation *explanation = NULL;
  assert_int_equal(tm_plan_explain(one.plan, &explanation, NULL), TM_OK);
  tm_plan_description plan = { .struct_size = sizeof plan };
  tm_plan_describe(one.plan, &plan);
  tm_plan_summary summary = summary_of(explanation);
  assert_int_equal(summary.is_current, 1);
  assert_int_equal(summary.total_ns, plan.predicted_ns);
  assert_int_equal(summary.planned_ns, plan.predicted_ns);
  assert_int_equal(summary.bound_ns, plan.bound_ns);
  assert_int_equal(summary.run_count, 0);
  tm_explained_run run = { .struct_size = sizeof run };
  assert_int_equal(tm_plan_explanation_run(explanation, 0, &run), TM_END);
  expect_plan_adds_up(explanation);
  tm_plan_explanation_destroy(explanation);

  plan_oracle_init(&oracle, &one);
  for (uint32_t i = 0; i < 8; i++) (void)plan_case_run(&one, &oracle, 0, 40 + i);
  plan_oracle_deinit(&oracle, &one);
  assert_int_equal(tm_plan_explain(one.plan, &explanation, NULL), TM_OK);
  expect_plan_adds_up(explanation);
  expect_moves(explanation);
  summary = summary_of(explanation);
  assert_int_equal(summary.run_count, 8);
  assert_true(summary.measured_ns != 0);
  uint32_t runs = 0, replayed = 0;
  for (; tm_plan_explanation_run(explanation, runs, &run) == TM_OK; runs++) replayed += run.replayed;
  assert_int_equal(runs, 8);
  assert_true(replayed != 0);
  tm_plan_step_description step = { .struct_size = sizeof step };
  for (uint32_t i = 0; tm_plan_step_describe(one.plan, i, &step) == TM_OK; i++) {
    tm_node_explanation node = { .struct_size = sizeof node };
    assert_int_equal(tm_plan_explanation_node(explanation, step.node, &node), TM_OK);
    assert_int_equal(node.device, step.device);
    assert_true(node.measured_ns != 0 && node.measured_count != 0);
  }
  tm_plan_explanation_destroy(explanation);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* Two work within their calls, and keep the thread meanwhile: whatever silicon they are of, they never work at the same time. */
static void who_keeps_the_thread_is_known(void **state) {
  (void)state;
  lazy_case machine;
  const tm_plan_options options = LAZY_OPTIONS;
  const lazy_control controls[] = { { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 1, .is_host = 1 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 2, .is_host = 1, .is_prompt = 1 },
                                    { .cost_ns = 20000, .cost_spread_ns = 60000, .cost_seed = 3, .is_host = 1, .is_prompt = 1 } };
  open_machine(&machine, controls);
  for (uint64_t seed = 1; seed <= 8; seed++) {
    plan_case one;
    plan_case_build(&one, machine.context, seed, 16);
    one.plan = lazy_plan(one.graph, &options);
    tm_plan_explanation *explanation = NULL;
    tm_plan_description plan = { .struct_size = sizeof plan };
    assert_int_equal(tm_plan_explain(one.plan, &explanation, NULL), TM_OK);
    tm_plan_describe(one.plan, &plan);
    assert_int_equal(summary_of(explanation).total_ns, plan.predicted_ns);
    expect_plan_adds_up(explanation);
    expect_moves(explanation);
    tm_plan_explanation_destroy(explanation);
    plan_case_destroy(&one);
  }
  lazy_case_close(&machine);
}

static void a_graph_without_bytes_is_explained_alike(void **state) {
  (void)state;
  const tm_context_options any = { .struct_size = sizeof any, .thread_count = 1 };
  const tm_plan_options options = ANY_OPTIONS;
  tm_context *context = NULL;
  plan_case one;
  tm_graph *loaded = NULL;
  tm_plan *plan = NULL;
  const char *path = TM_BINARY_DIR "/tests/explained.graph";
  assert_int_equal(tm_context_create(&any, &context, NULL), TM_OK);
  plan_case_build(&one, context, 51, 20);
  assert_int_equal(tm_graph_save(one.graph, path, 0, NULL), TM_OK);
  assert_int_equal(tm_graph_load(context, path, &loaded, NULL), TM_OK);
  assert_int_equal(tm_plan_create(loaded, &options, &plan, NULL), TM_ERROR_ARGUMENT);
  tm_plan_explanation *bound = explain(one.graph, &options), *unbound = explain(loaded, &options);
  tm_graph_destroy(loaded);             /* nothing of it is needed any more */
  expect_plan_adds_up(bound);
  expect_plan_adds_up(unbound);
  const tm_plan_summary a = summary_of(bound), b = summary_of(unbound);
  assert_memory_equal(&a, &b, sizeof a);
  for (uint32_t node = 0; node < a.node_count; node++) {
    const tm_node_candidate one_way = candidate_of(bound, node, 0), other = candidate_of(unbound, node, 0);
    assert_int_equal(one_way.device, other.device);
    assert_int_equal(one_way.total_ns, other.total_ns);
  }
  tm_plan_explanation_destroy(bound);
  tm_plan_explanation_destroy(unbound);
  tm_graph_description graph = { .struct_size = sizeof graph };
  tm_graph_describe(one.graph, &graph);
  assert_int_equal(graph.sealed, 0);
  plan_case_destroy(&one);
  tm_context_destroy(context);
  unlink(path);
}

/* ---- odd requests ---- */

static void odd_requests_are_errors(void **state) {
  (void)state;
  static const char *const nobody[] = { "reference", "cpu" }, *const unknown[] = { "nobody" };
  const tm_context_options any = { .struct_size = sizeof any, .thread_count = 1 };
  tm_context *context = NULL;
  tm_graph *graph = NULL;
  tm_plan_explanation *explanation = NULL;
  tm_error error = TM_ERROR_INIT;
  uint32_t value = 0, outputs[1];
  assert_int_equal(tm_context_create(&any, &context, NULL), TM_OK);
  assert_int_equal(tm_graph_create(context, &graph, NULL), TM_OK);
  explanation = explain(graph, NULL);   /* of nothing at all */
  expect_plan_adds_up(explanation);
  assert_int_equal(summary_of(explanation).total_ns, 0);
  tm_plan_explanation_destroy(explanation);
  assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &value, NULL), TM_OK);
  assert_int_equal(tm_graph_node(graph, "only", TM_OP_TANH, NULL, 0, &value, 1, NULL, 1, outputs, NULL), TM_OK);
  tm_plan_options options = ANY_OPTIONS;
  options.excluded_devices = nobody;
  options.excluded_device_count = 2;
  assert_int_equal(tm_graph_explain(graph, &options, &explanation, &error), TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, "only"));
  options.excluded_devices = unknown;
  options.excluded_device_count = 1;
  assert_int_equal(tm_graph_explain(graph, &options, &explanation, &error), TM_ERROR_ARGUMENT);
  options.excluded_device_count = 0;
  options.worst_numerics = 17;
  assert_int_equal(tm_graph_explain(graph, &options, &explanation, &error), TM_ERROR_ARGUMENT);
  explanation = explain(graph, NULL);
  tm_node_explanation node = { .struct_size = sizeof node };
  tm_node_candidate candidate = { .struct_size = sizeof candidate };
  tm_changed_node changed = { .struct_size = sizeof changed };
  assert_int_equal(tm_plan_explanation_node(explanation, 1, &node), TM_END);
  assert_int_equal(tm_plan_explanation_node(explanation, UINT32_MAX, &node), TM_END);
  assert_int_equal(tm_plan_explanation_candidate(explanation, 0, 1000, &candidate), TM_END);
  assert_int_equal(tm_plan_explanation_candidate(explanation, 0, UINT32_MAX, &candidate), TM_END);
  assert_int_equal(tm_plan_explanation_candidate(explanation, 1, 0, &candidate), TM_END);
  assert_int_equal(tm_plan_explanation_changed_node(explanation, TM_NO_CHANGE, 0, &changed), TM_END);
  assert_int_equal(tm_plan_explanation_changed_node(explanation, 0, 1, &changed), TM_END);
  node.struct_size = offsetof(tm_node_explanation, why);        /* a caller of an older version */
  node.why = 77;
  assert_int_equal(tm_plan_explanation_node(explanation, 0, &node), TM_OK);
  assert_int_equal(node.why, 77);
  tm_plan_explanation_destroy(explanation);
  tm_plan_explanation_destroy(NULL);
  tm_graph_destroy(graph);
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_adds_up_where_things_overlap),
    cmocka_unit_test(all_adds_up_where_nothing_does),
    cmocka_unit_test(what_does_not_overlap_is_not_said_to),
    cmocka_unit_test(changes_are_what_they_would_be),
    cmocka_unit_test(the_requirement_that_moves_a_node_is_named),
    cmocka_unit_test(excluded_devices_are_told_of),
    cmocka_unit_test(memory_has_a_price_where_it_is_short),
    cmocka_unit_test(opening_is_charged_once),
    cmocka_unit_test(one_resource_is_kept_to),
    cmocka_unit_test(nothing_takes_less_than_the_bound),
    cmocka_unit_test(weights_are_told_of),
    cmocka_unit_test(a_plan_is_explained_as_it_is),
    cmocka_unit_test(who_keeps_the_thread_is_known),
    cmocka_unit_test(a_graph_without_bytes_is_explained_alike),
    cmocka_unit_test(odd_requests_are_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
