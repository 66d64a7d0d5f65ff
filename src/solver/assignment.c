/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/assignment.h"

#include <string.h>

#include "base/checked.h"
#include "solver/branching.h"
#include "solver/common_proof.h"
#include "solver/dead_ends.h"
#include "solver/descent.h"
#include "solver/elimination.h"
#include "solver/problem_check.h"

/* What to try when everything together is over the budget: bits of many readers taken apart, first of very many, then also
   smaller and smaller tables.  Each is a coarser bound. */
static const tm_elimination_limits relaxations[] = {
  { 0, 0, 63 }, { 0, 0, 7 }, { 0, 1u << 16, 7 }, { 0, 1u << 12, 7 }, { 0, 1u << 8, 7 }, { 0, 1, 7 },
};
#define RELAXATIONS (sizeof relaxations / sizeof relaxations[0])
#define MOST_LISTED_ANYHOW  65536u      /* factors: they take no time */
#define MOST_OVERDRAFT      8u          /* times the budget, for what is as coarse as it gets */
#define MOST_COARSE_ENTRIES 4096u       /* of a table where values are shared out */
#define MOST_TRIED_ANYHOW 4096u         /* variables that are left: it takes no time to try everything then */

typedef struct solving {
  const tm_solver_problem *problem;
  tm_arena            *arena;
  tm_arena             order_arena;     /* of the last order that was tried ... */
  tm_arena             graph_arena;     /* ... and of its graph */
  uint64_t             most_entries;
  uint32_t             common_readers;
  uint32_t             most_nodes;
  bool                 with_marginals;
  tm_choices           choices;
  tm_flow              flow;
  tm_factor_graph      graph;
  tm_elimination_order order;
  tm_elimination       elimination;
  bool                 is_pruned;
  tm_common_values     common;
  tm_common_proof      proof;           /* all zero: there are no common values, or no proof was tried */
  uint64_t             proof_entries;
  uint32_t             proof_width;
  uint32_t            *chosen;          /* [op]: a choice */
  uint64_t             bound_ns;
} solving;

static tm_status no_memory(const solving *s, tm_error *error) {
  return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to place %u operations", s->problem->op_count);
}

/* In place of the one before, and of its order. */
static tm_status build_graph(solving *s, tm_factor_rules rules, tm_error *error) {
  tm_arena_deinit(&s->order_arena);
  tm_arena_deinit(&s->graph_arena);
  return tm_factor_graph_init(&s->graph, s->problem, &s->choices, &s->flow, rules, &s->graph_arena, error);
}

static tm_status prune(solving *s, tm_error *error) {
  uint64_t dropped;
  TM_TRY(tm_dead_ends_drop(&s->choices, s->problem, &s->flow, s->arena, &dropped, error));
  s->is_pruned = dropped != 0;
  return TM_OK;
}

static tm_status relax(solving *s, const tm_elimination_limits *relaxation, uint64_t most_entries, tm_error *error) {
  tm_elimination_limits limits = *relaxation;
  limits.most_entries = most_entries;
  tm_arena_deinit(&s->order_arena);
  return tm_elimination_order_init(&s->order, &s->graph, &limits, &s->order_arena, error);
}

static tm_status order_exactly(solving *s, tm_error *error) {
  const tm_elimination_limits none = { 0, 0, 0 };
  return relax(s, &none, s->most_entries, error);
}

static bool has_exact_order(const solving *s) {
  return s->order.is_complete && s->order.is_exact && s->graph.sharers == NULL;
}

/* Whether there would be so many factors, each with a table, that there is no need to list them. */
static bool is_tangled(const solving *s, const bool *is_left_out) {
  uint64_t count = 0;
  for (uint32_t v = 0; v < s->problem->value_count; v++) {
    const uint32_t first = s->flow.first_reader[v], end = s->flow.first_reader[v + 1];
    if (end - first < 2 || (is_left_out != NULL && is_left_out[v])) continue;
    for (uint32_t i = first; i < end; i++) count += tm_choices_count(&s->choices, s->flow.readers[i]);
  }
  return count > s->most_entries / 4 && count > MOST_LISTED_ANYHOW;
}

static tm_status order_together(solving *s, tm_error *error) {
  if (is_tangled(s, NULL)) {
    s->order = (tm_elimination_order){ .left_count = UINT32_MAX };
    return TM_OK;
  }
  const tm_factor_rules rules = { .is_left_out = NULL };
  TM_TRY(build_graph(s, rules, error));
  return order_exactly(s, error);
}

/* Whether a relaxation changes anything, and may fit: what was left when the exact order was given up gets a table each. */
static bool is_promising(const solving *s, const tm_elimination_order *exact, const tm_elimination_limits *relaxation) {
  if (relaxation->most_table_entries == 0) return exact->most_bit_readers > relaxation->most_bit_readers;
  const uint64_t entries = relaxation->most_table_entries / 4 * exact->left_count;
  return exact->left_count <= MOST_TRIED_ANYHOW || (entries != 0 && entries <= s->most_entries);
}

/* When nothing fits: the coarsest, or what is finer and takes no more.  A plan is worth more than the budget. */
static tm_status order_somehow(solving *s, tm_error *error) {
  TM_TRY(relax(s, &relaxations[RELAXATIONS - 1], UINT64_MAX, error));
  const uint64_t coarsest_entries = s->order.table_entries;
  for (size_t i = 0; i + 1 < RELAXATIONS; i++) {
    TM_TRY(relax(s, &relaxations[i], coarsest_entries, error));
    if (s->order.is_complete) return TM_OK;
  }
  return relax(s, &relaxations[RELAXATIONS - 1], UINT64_MAX, error);
}

/* Each operation by itself, as if copies cost nothing: where operations have so many choices that pairs of them are too many. */
static tm_status order_alone(solving *s, tm_error *error) {
  bool *is_left_out = tm_arena_calloc(s->arena, s->problem->value_count, sizeof *is_left_out);
  if (is_left_out == NULL) return no_memory(s, error);
  for (uint32_t v = 0; v < s->problem->value_count; v++) is_left_out[v] = true;
  const tm_factor_rules rules = { .is_left_out = is_left_out, .is_shared_out = true };
  TM_TRY(build_graph(s, rules, error));
  return relax(s, &relaxations[RELAXATIONS - 1], UINT64_MAX, error);
}

/* The same for large graphs: without bits, and with tables that are certain to fit, or as small as they get. */
static tm_status order_shared_out(solving *s, tm_error *error) {
  const tm_factor_rules rules = { .is_shared_out = true };
  TM_TRY(build_graph(s, rules, error));
  tm_elimination_limits limits = { 0, MOST_COARSE_ENTRIES, 0 };
  while (limits.most_table_entries > 1 && limits.most_table_entries * s->problem->op_count > s->most_entries)
    limits.most_table_entries /= 2;
  TM_TRY(relax(s, &limits, UINT64_MAX, error));
  return s->order.table_entries / MOST_OVERDRAFT <= s->most_entries ? TM_OK : order_alone(s, error);
}

/* An exact order of everything, if one fits without dead ends. */
static tm_status order_pruned(solving *s, tm_error *error) {
  if (!s->with_marginals) return order_together(s, error);
  TM_TRY(prune(s, error));
  if (s->is_pruned) s->proof.chosen = NULL;     /* choices have other numbers now */
  return s->is_pruned || s->common.value_count != 0 ? order_together(s, error) : TM_OK;
}

/* Or else the finest relaxation that fits. */
static tm_status order_coarsely(solving *s, tm_error *error) {
  const tm_elimination_order exact = s->order;
  for (size_t i = 0; i < RELAXATIONS; i++) {
    if (!is_promising(s, &exact, &relaxations[i])) continue;
    TM_TRY(relax(s, &relaxations[i], s->most_entries, error));
    if (s->order.is_complete) return TM_OK;
  }
  return exact.left_count <= MOST_TRIED_ANYHOW ? order_somehow(s, error) : order_shared_out(s, error);
}

static uint32_t node_count(const solving *s) {
  return (uint32_t)tm_min_u64(s->most_nodes, TM_ASSIGNMENT_NODE_ENTRIES / (s->order.table_entries + 1));
}

/* ---- common values apart ---- */

/* A plan and a proof without the tables that common values would make wide, where the rest is narrow. */
static tm_status prove_apart(solving *s, tm_error *error) {
  TM_TRY(tm_common_values_init(&s->common, s->problem, &s->choices, &s->flow, s->common_readers, s->arena, error));
  if (s->common.value_count == 0 || is_tangled(s, s->common.is_common)) return TM_OK;
  const tm_factor_rules rules = { .is_left_out = s->common.is_common };
  TM_TRY(build_graph(s, rules, error));
  TM_TRY(order_exactly(s, error));
  if (!has_exact_order(s)) return TM_OK;
  s->proof = (tm_common_proof){ .common = &s->common, .graph = &s->graph, .order = &s->order, .most_nodes = node_count(s),
                                .wants_marginals = s->with_marginals };
  s->proof_entries = s->order.table_entries;
  s->proof_width = s->order.width;
  return tm_common_proof_run(&s->proof, s->arena, error);
}

static bool is_proven(const solving *s) {
  return s->proof.chosen != NULL && s->proof.price.nevers == 0 && s->proof.price.ns == s->proof.bound_ns;
}

/* ---- everything together ---- */

/* The operation to name when a variable has no state left. */
static uint32_t op_of(const solving *s, uint32_t variable) {
  if (variable < s->problem->op_count) return variable;
  for (uint32_t f = 0; f < s->graph.factor_count; f++) {
    const tm_factor *factor = &s->graph.factors[f];
    if (factor->bit == variable && factor->reader != TM_SOLVER_NONE) return factor->reader;
  }
  return 0;
}

/* An exact order needs no branch: its plan costs what the tables say. */
static tm_status choose(solving *s, tm_plan_price *out_price, tm_error *error) {
  if (s->elimination.total_ns == TM_SOLVER_NEVER)
    return tm_fail(error, TM_ERROR_NO_DEVICE, "operation %u can run nowhere that its inputs can get to and its outputs can leave",
                   op_of(s, s->elimination.impossible));
  tm_plan_cost plan;
  TM_TRY(tm_plan_cost_init(&plan, s->problem, &s->choices, &s->flow, s->arena, error));
  tm_branching branching = { .elimination = &s->elimination, .plan = &plan };
  if (s->order.is_exact_but_bits && s->graph.sharers == NULL)
    branching.nodes_left = node_count(s);
  branching.states = tm_arena_calloc(s->arena, s->graph.variable_count, sizeof(uint32_t));
  branching.candidate = tm_arena_alloc(s->arena, s->problem->op_count * sizeof(uint32_t));
  branching.best = s->chosen = tm_arena_alloc(s->arena, s->problem->op_count * sizeof(uint32_t));
  if (branching.states == NULL || branching.candidate == NULL || branching.best == NULL) return no_memory(s, error);
  tm_branching_run(&branching);
  s->bound_ns = branching.bound_ns;
  *out_price = branching.best_price;
  s->bound_ns = tm_max_u64(s->bound_ns, s->proof.bound_ns);
  if (s->proof.chosen != NULL && tm_plan_price_is_less(s->proof.price, *out_price)) {
    *out_price = s->proof.price;
    s->chosen = s->proof.chosen;
  }
  if (out_price->nevers == 0 && out_price->ns == s->bound_ns) return TM_OK;
  return tm_descent_run(s->problem, &s->choices, &s->flow, s->chosen, s->arena, out_price, error);
}

/* From choices, which come first, to labels. */
static void spread_marginals(const solving *s, const uint64_t *marginals, tm_assignment *out) {
  const tm_solver_problem *p = s->problem;
  for (uint32_t i = 0; i < p->label_count; i++) {
    const uint32_t choice = s->choices.of_label[i];
    const uint64_t more = choice == TM_SOLVER_NONE ? 0 : p->labels[i].cost_ns - s->choices.items[choice].cost_ns;
    const uint64_t otherwise = p->labels[i].cost_ns == TM_SOLVER_NEVER ? TM_SOLVER_NEVER : out->bound_ns;
    out->min_marginals[i] = choice == TM_SOLVER_NONE ? otherwise : tm_solver_add(marginals[choice], more);
  }
}

static tm_status find_marginals(solving *s, tm_assignment *out, tm_error *error) {
  const uint64_t unaries = s->graph.variable_count == 0 ? 0 : s->graph.first_unary[s->graph.variable_count - 1] +
                                                                  s->graph.state_counts[s->graph.variable_count - 1];
  uint64_t *marginals = tm_arena_alloc(s->arena, unaries * sizeof *marginals);
  if (marginals == NULL) return no_memory(s, error);
  TM_TRY(tm_elimination_marginals(&s->elimination, marginals, s->arena, error));
  spread_marginals(s, marginals, out);
  return TM_OK;
}

static tm_status fill_result(solving *s, tm_plan_price price, tm_assignment *out, tm_error *error) {
  if (price.nevers != 0)
    return tm_fail(error, TM_ERROR_LIMIT, "no plan for %u operations was found with %llu table entries; allow more",
                   s->problem->op_count, (unsigned long long)tm_max_u64(s->most_entries, s->order.table_entries));
  if (has_exact_order(s) && price.ns != s->elimination.total_ns)
    return tm_fail(error, TM_ERROR_INTERNAL, "a plan costs %llu ns where the tables say %llu", (unsigned long long)price.ns,
                   (unsigned long long)s->elimination.total_ns);
  for (uint32_t op = 0; op < s->problem->op_count; op++) out->labels[op] = s->choices.items[s->chosen[op]].label;
  out->total_ns = price.ns;
  out->bound_ns = s->bound_ns;
  out->table_entries = s->order.table_entries;
  out->width = s->order.width;
  out->is_exact = price.ns == s->bound_ns;
  out->marginals_are_exact = s->with_marginals && has_exact_order(s) && !s->is_pruned;
  return s->with_marginals ? find_marginals(s, out, error) : TM_OK;
}

static void fill_proven(const solving *s, tm_assignment *out) {
  const tm_common_proof *proof = &s->proof;
  for (uint32_t op = 0; op < s->problem->op_count; op++) out->labels[op] = s->choices.items[proof->chosen[op]].label;
  out->total_ns = out->bound_ns = proof->price.ns;
  out->table_entries = s->proof_entries;
  out->width = s->proof_width;
  out->is_exact = true;
  out->marginals_are_exact = proof->marginals_are_exact;
  if (s->with_marginals) spread_marginals(s, proof->marginals, out);
}

/* Coarser tables over everything would take long, and be no better: the proof's bound is of tables that are exact but for how
   the copies of common values are shared.  Nor would plans that begin elsewhere. */
static bool is_good_enough(const solving *s) {
  return !s->with_marginals && s->proof.chosen != NULL && tm_common_proof_is_close(s->proof.price, s->proof.bound_ns);
}

static tm_status take_good_enough(solving *s, tm_assignment *out, tm_error *error) {
  tm_common_proof *proof = &s->proof;
  TM_TRY(tm_descent_from(s->problem, &s->choices, &s->flow, proof->chosen, s->arena, &proof->price, error));
  for (uint32_t op = 0; op < s->problem->op_count; op++) out->labels[op] = s->choices.items[proof->chosen[op]].label;
  out->total_ns = proof->price.ns;
  out->bound_ns = proof->bound_ns;
  out->table_entries = s->proof_entries;
  out->width = s->proof_width;
  out->is_exact = out->total_ns == out->bound_ns;
  return TM_OK;
}

/* With marginals everything together goes first: only that has them all.  Otherwise common values apart, which takes less. */
static tm_status solve(solving *s, tm_assignment *out, tm_error *error) {
  tm_plan_price price;
  TM_TRY(tm_choices_init(&s->choices, s->problem, s->arena, error));
  TM_TRY(tm_flow_init(&s->flow, s->problem, s->arena, error));
  TM_TRY(s->with_marginals ? order_together(s, error) : prune(s, error));
  if (!has_exact_order(s)) {
    TM_TRY(prove_apart(s, error));
    if (is_proven(s)) {
      fill_proven(s, out);
      return TM_OK;
    }
    TM_TRY(order_pruned(s, error));
    if (!has_exact_order(s) && is_good_enough(s)) return take_good_enough(s, out, error);
    if (!has_exact_order(s)) TM_TRY(order_coarsely(s, error));
  }
  TM_TRY(tm_elimination_init(&s->elimination, &s->graph, &s->order, s->arena, error));
  TM_TRY(choose(s, &price, error));
  return fill_result(s, price, out, error);
}

tm_status tm_assignment_solve(const tm_solver_problem *problem, const tm_assignment_options *options, tm_memory *memory,
                              tm_assignment *out, tm_error *error) {
  if (out == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there is no place for the assignment");
  TM_TRY(tm_problem_check(problem, memory, error));
  const uint64_t asked = options == NULL ? 0 : options->most_entries;
  if (asked > TM_ASSIGNMENT_MOST_ENTRIES)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%llu table entries; at most %llu are possible", (unsigned long long)asked,
                   (unsigned long long)TM_ASSIGNMENT_MOST_ENTRIES);
  tm_arena arena;
  tm_arena_init(&arena, memory);
  solving s = { .problem = problem, .arena = &arena, .with_marginals = options == NULL || !options->without_marginals };
  s.common_readers = options == NULL || options->common_readers == 0 ? TM_ASSIGNMENT_COMMON_READERS : options->common_readers;
  s.most_nodes = options == NULL || options->most_nodes == 0 ? TM_ASSIGNMENT_NODES : options->most_nodes;
  tm_arena_init(&s.order_arena, memory);
  tm_arena_init(&s.graph_arena, memory);
  s.most_entries = asked != 0 ? asked : TM_ASSIGNMENT_ENTRIES + TM_ASSIGNMENT_ENTRIES_PER_OP * problem->op_count;
  tm_assignment result = { .memory = memory, .op_count = problem->op_count, .label_count = problem->label_count };
  result.labels = tm_memory_calloc(memory, problem->op_count, sizeof(uint32_t));
  if (s.with_marginals) result.min_marginals = tm_memory_calloc(memory, problem->label_count, sizeof(uint64_t));
  tm_status status = result.labels == NULL || (s.with_marginals && result.min_marginals == NULL) ? no_memory(&s, error)
                                                                                                 : solve(&s, &result, error);
  tm_arena_deinit(&s.order_arena);
  tm_arena_deinit(&s.graph_arena);
  tm_arena_deinit(&arena);
  if (status == TM_OK) *out = result;
  else tm_assignment_deinit(&result);
  return status;
}

void tm_assignment_deinit(tm_assignment *assignment) {
  if (assignment == NULL || assignment->memory == NULL) return;
  tm_memory_free(assignment->memory, assignment->labels, assignment->op_count * sizeof(uint32_t));
  tm_memory_free(assignment->memory, assignment->min_marginals, assignment->label_count * sizeof(uint64_t));
  *assignment = (tm_assignment){ 0 };
}
