/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/common_proof.h"

#include <string.h>

#include "base/checked.h"

#define MOST_TURNS      3u      /* solves until the uses that are paid are those of the plan */
#define MOST_EXACT_USES 16u     /* that are forbidden one by one for exact marginals */

typedef struct proving {
  tm_common_proof *proof;
  tm_arena        *arena;
  tm_common_search search;
  uint32_t        *order;       /* [use]: paid ones, the dearest to leave out first */
  uint64_t        *unary;       /* [choice]: of the graph, without common values */
  uint64_t        *weights;     /* [reader of a value] */
  uint64_t         unary_count;
  uint64_t         tables_ns;   /* what the tables say that the plan costs, without constant_ns */
  tm_common_sums   sums;        /* of the uses of the plan */
} proving;

static tm_status begin(proving *p, tm_error *error) {
  tm_common_proof *proof = p->proof;
  const tm_factor_graph *graph = proof->graph;
  const uint32_t variables = graph->variable_count, last = variables == 0 ? 0 : variables - 1, ops = graph->problem->op_count;
  p->unary_count = variables == 0 ? 0 : graph->first_unary[last] + graph->state_counts[last];
  uint32_t *states = tm_arena_calloc(p->arena, variables, sizeof *states);
  uint32_t *candidate = tm_arena_calloc(p->arena, ops, sizeof *candidate);
  proof->chosen = tm_arena_calloc(p->arena, ops, sizeof *proof->chosen);
  proof->marginals = tm_arena_calloc(p->arena, p->unary_count, sizeof *proof->marginals);
  p->order = tm_arena_calloc(p->arena, proof->common->use_count, sizeof *p->order);
  uint32_t *lists = tm_arena_calloc(p->arena, TM_COMMON_SEARCH_DEPTH * (uint64_t)proof->common->use_count, sizeof *lists);
  p->unary = tm_arena_calloc(p->arena, p->unary_count, sizeof *p->unary);
  p->weights = tm_arena_calloc(p->arena, ops, sizeof *p->weights);
  if (states == NULL || candidate == NULL || lists == NULL || proof->chosen == NULL || proof->marginals == NULL || p->order == NULL ||
      p->unary == NULL || p->weights == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to place %u operations", ops);
  if (p->unary_count != 0) memcpy(p->unary, graph->unary, p->unary_count * sizeof *p->unary);
  p->search = (tm_common_search){ .common = proof->common, .graph = proof->graph, .elimination = &proof->elimination,
                                  .plan = &proof->plan, .unary = p->unary, .states = states, .candidate = candidate,
                                  .lists = lists, .best = proof->chosen, .best_price = { UINT64_MAX, UINT64_MAX } };
  TM_TRY(tm_plan_cost_init(&proof->plan, graph->problem, graph->choices, graph->flow, p->arena, error));
  tm_common_values_apply(proof->common, p->unary, proof->graph);
  return tm_elimination_init(&proof->elimination, graph, proof->order, p->arena, error);
}

static void solve_again(proving *p) {
  tm_common_values_apply(p->proof->common, p->unary, p->proof->graph);
  tm_elimination_renew(&p->proof->elimination);
}

/* Solves until what is paid is what the plan uses.  Then the plan costs what the tables say. */
static bool find_plan(proving *p) {
  tm_common_proof *proof = p->proof;
  for (uint32_t turn = 0; turn < MOST_TURNS; turn++) {
    if (proof->elimination.total_ns == TM_SOLVER_NEVER) return false;
    const tm_plan_price price = tm_common_search_take(&p->search);
    if (price.nevers != 0) return false;
    if (tm_common_values_follow(proof->common, &proof->plan)) {
      solve_again(p);
      continue;
    }
    p->sums = tm_common_values_sums(proof->common);
    p->tables_ns = proof->elimination.total_ns;
    if (p->sums.most_ns > TM_TABLE_SMALL) return false;
    return price.ns == p->tables_ns + p->sums.constant_ns;
  }
  return false;
}

static uint64_t price_of(const proving *p) {
  return p->search.best_price.nevers != 0 ? TM_SOLVER_NEVER : p->search.best_price.ns;
}

static bool is_proven(const proving *p) { return p->search.best_price.nevers == 0 && p->proof->bound_ns >= price_of(p); }

/* ---- by regrets ---- */

typedef struct alternative {
  uint32_t memory;              /* that a reader reads in at best */
  uint64_t lost_ns;             /* by it reading elsewhere */
} alternative;

/* `costs` ([choice]): any measure of what a choice makes of the whole. */
static alternative alternative_of(const proving *p, const uint64_t *costs, uint32_t op) {
  const tm_choices *choices = p->proof->graph->choices;
  uint32_t best = choices->first[op];
  uint64_t elsewhere = TM_SOLVER_NEVER;
  for (uint32_t c = best + 1; c < choices->first[op + 1]; c++) best = costs[c] < costs[best] ? c : best;
  const uint32_t memory = choices->items[best].input_memory;
  for (uint32_t c = choices->first[op]; c < choices->first[op + 1]; c++) {
    if (choices->items[c].input_memory != memory) elsewhere = tm_min_u64(elsewhere, costs[c]);
  }
  return (alternative){ memory, elsewhere == TM_SOLVER_NEVER ? elsewhere : elsewhere - costs[best] };
}

static void find_regrets(proving *p) {
  const tm_common_values *common = p->proof->common;
  for (uint32_t i = 0; i < common->use_count; i++) common->uses[i].without_ns = p->tables_ns;
  for (uint32_t n = 0; n < common->value_count; n++) {
    const uint32_t value = common->values[n];
    for (uint32_t i = common->flow->first_reader[value]; i < common->flow->first_reader[value + 1]; i++) {
      const alternative found = alternative_of(p, p->proof->marginals, common->flow->readers[i]);
      const uint32_t use = tm_common_values_find(common, n, found.memory);
      if (use == TM_SOLVER_NONE) continue;
      common->uses[use].without_ns = tm_max_u64(common->uses[use].without_ns, tm_solver_add(p->tables_ns, found.lost_ns));
    }
  }
}

/* Paid uses in order of what leaving them out costs. */
static uint32_t order_uses(proving *p) {
  const tm_common_values *common = p->proof->common;
  uint32_t count = 0;
  for (uint32_t i = 0; i < common->use_count; i++) {
    if (common->uses[i].state == TM_COMMON_PAID) p->order[count++] = i;
  }
  for (uint32_t width = count / 2; width > 0; width /= 2) {
    for (uint32_t i = width; i < count; i++) {
      const uint32_t moved = p->order[i];
      uint32_t at = i;
      for (; at >= width && common->uses[p->order[at - width]].without_ns < common->uses[moved].without_ns; at -= width)
        p->order[at] = p->order[at - width];
      p->order[at] = moved;
    }
  }
  return count;
}

/* The least sum (without constant_ns) of a plan that does not make all paid uses: such a plan leaves out one first in the order,
   and saves that and later ones at most. */
static uint64_t least_without(proving *p) {
  const tm_common_values *common = p->proof->common;
  const uint32_t count = order_uses(p);
  uint64_t savable = p->sums.most_ns, least = TM_SOLVER_NEVER;
  for (uint32_t i = 0; i < count; i++) {
    const tm_common_use *use = &common->uses[p->order[i]];
    if (use->without_ns != TM_SOLVER_NEVER)
      least = tm_min_u64(least, use->without_ns > savable ? use->without_ns - savable : 0);
    savable -= use->most_ns;
  }
  return least;
}

static void settle_marginals(proving *p, uint64_t cap) {
  uint64_t *marginals = p->proof->marginals;
  for (uint64_t i = 0; i < p->unary_count; i++) {
    if (marginals[i] != TM_SOLVER_NEVER) marginals[i] = tm_min_u64(marginals[i], cap) + p->sums.constant_ns;
  }
}

/* ---- exact marginals ---- */

/* Solves once more for each use, without it: then its bound is the best there is. */
static void sharpen(proving *p) {
  tm_common_proof *proof = p->proof;
  for (uint32_t i = 0; i < proof->common->use_count; i++) {
    proof->common->uses[i].state = TM_COMMON_FORBIDDEN;
    solve_again(p);
    proof->common->uses[i].without_ns = proof->elimination.total_ns;
    proof->common->uses[i].state = TM_COMMON_PAID;
  }
}

static bool are_all_paid(const tm_common_values *common) {
  for (uint32_t i = 0; i < common->use_count; i++) {
    if (common->uses[i].state != TM_COMMON_PAID) return false;
  }
  return true;
}

/* The plan behind a marginal pays for all uses at most, and that is what it costs unless one leaves some of them out. */
static bool are_exact(const proving *p, uint64_t cap) {
  const tm_factor_graph *graph = p->proof->graph;
  for (uint32_t c = 0; c < graph->choices->first[graph->problem->op_count]; c++) {
    if (p->proof->marginals[c] != TM_SOLVER_NEVER && p->proof->marginals[c] > cap) return false;
  }
  return true;
}

static void prove_by_regrets(proving *p) {
  tm_common_proof *proof = p->proof;
  find_regrets(p);
  uint64_t least = least_without(p);
  const bool may_be_exact =
      proof->wants_marginals && are_all_paid(proof->common) && proof->common->use_count <= MOST_EXACT_USES;
  if (may_be_exact && !are_exact(p, least)) {
    sharpen(p);
    least = least_without(p);
  }
  if (least < p->tables_ns) return;
  proof->bound_ns = price_of(p);
  proof->marginals_are_exact = may_be_exact && are_exact(p, least);
  settle_marginals(p, least);
}

/* ---- by tolls ---- */

/* amount * part / whole, rounded down: part <= whole < 2^32. */
static uint64_t portion(uint64_t amount, uint64_t part, uint64_t whole) {
  return amount / whole * part + amount % whole * part / whole;
}

/* What a reader would lose elsewhere, as far as that counts; in units such that the sum over all readers fits 32 bits. */
static uint64_t weight_of(const proving *p, const uint64_t *costs, uint32_t op, const tm_common_use *use, uint32_t digits) {
  const alternative found = alternative_of(p, costs, op);
  return found.memory != use->memory ? 0 : tm_min_u64(found.lost_ns, use->most_ns) >> digits;
}

static void add_toll(proving *p, uint32_t op, uint32_t memory, uint64_t toll) {
  const tm_factor_graph *graph = p->proof->graph;
  for (uint32_t c = graph->choices->first[op]; c < graph->choices->first[op + 1]; c++) {
    if (graph->choices->items[c].input_memory == memory) graph->unary[c] = tm_solver_add(graph->unary[c], toll);
  }
}

/* Divides the dearest copy among the readers that lose the most; what rounding leaves is for the one that loses most of all. */
static void share_out(proving *p, const uint64_t *costs, const tm_common_use *use) {
  const tm_flow *flow = p->proof->graph->flow;
  const uint32_t first = flow->first_reader[use->value], end = flow->first_reader[use->value + 1];
  uint32_t digits = 0, heaviest = first;
  uint64_t most = 0, whole = 0;
  while ((uint64_t)(end - first) > UINT32_MAX / ((use->most_ns >> digits) + 1)) digits++;
  for (uint32_t i = first; i < end; i++) {
    p->weights[i - first] = weight_of(p, costs, flow->readers[i], use, digits);
    if (p->weights[i - first] <= most) continue;
    most = p->weights[i - first];
    heaviest = i;
  }
  for (uint32_t i = first; i < end; i++) {
    if (p->weights[i - first] < most / 2) p->weights[i - first] = 0;
    whole += p->weights[i - first];
  }
  uint64_t left = use->most_ns;
  for (uint32_t i = first; i < end && whole != 0; i++) {
    const uint64_t toll = portion(use->most_ns, p->weights[i - first], whole);
    add_toll(p, flow->readers[i], use->memory, toll);
    left -= toll;
  }
  add_toll(p, flow->readers[heaviest], use->memory, left);
}

/* Tolls by what choices cost as `costs` has it, and the bound that they give.  They stay in the graph. */
static void charge_tolls(proving *p, const uint64_t *costs) {
  tm_common_proof *proof = p->proof;
  tm_common_values_apply(proof->common, p->unary, proof->graph);
  for (uint32_t i = 0; i < proof->common->use_count; i++) {
    if (proof->common->uses[i].state == TM_COMMON_PAID) share_out(p, costs, &proof->common->uses[i]);
  }
  tm_elimination_renew(&proof->elimination);
  const uint64_t sum = tm_solver_add(proof->elimination.total_ns, p->sums.constant_ns);
  proof->bound_ns = tm_max_u64(proof->bound_ns, sum > p->sums.most_ns ? sum - p->sums.most_ns : 0);
  if (!is_proven(p)) tm_common_search_take(&p->search);
}

/* Who read elsewhere rather than pay a toll pays none from then on. */
static void spare_who_left(const proving *p, uint64_t *costs) {
  const tm_choices *choices = p->proof->graph->choices;
  for (uint32_t op = 0; op < p->proof->graph->problem->op_count; op++) {
    if (choices->items[p->search.candidate[op]].input_memory == alternative_of(p, costs, op).memory) continue;
    for (uint32_t c = choices->first[op]; c < choices->first[op + 1]; c++) costs[c] = 0;
  }
}

/* What moving one operation alone costs stands for what is lost: more than the truth, but it takes no time to find. */
static void prove_by_moves(proving *p) {
  const tm_factor_graph *graph = p->proof->graph;
  uint64_t *costs = p->proof->marginals;
  for (uint32_t op = 0; op < graph->problem->op_count; op++) tm_plan_cost_list(&p->proof->plan, op, costs);
  bool is_better = true;
  for (uint32_t turn = 0; turn < MOST_TURNS && is_better && !is_proven(p); turn++) {
    const uint64_t bound = p->proof->bound_ns;
    if (turn != 0) spare_who_left(p, costs);
    charge_tolls(p, costs);
    is_better = p->proof->bound_ns > bound;
  }
}

static tm_status prove_by_marginals(proving *p, tm_error *error) {
  tm_common_proof *proof = p->proof;
  TM_TRY(tm_elimination_marginals(&proof->elimination, proof->marginals, p->arena, error));
  prove_by_regrets(p);
  if (is_proven(p)) return TM_OK;
  charge_tolls(p, proof->marginals);
  if (!proof->wants_marginals || !is_proven(p)) return TM_OK;
  TM_TRY(tm_elimination_marginals(&proof->elimination, proof->marginals, p->arena, error));
  for (uint64_t i = 0; i < p->unary_count; i++) {
    if (proof->marginals[i] == TM_SOLVER_NEVER) continue;
    const uint64_t sum = proof->marginals[i] + p->sums.constant_ns;
    proof->marginals[i] = tm_max_u64(sum > p->sums.most_ns ? sum - p->sums.most_ns : 0, proof->bound_ns);
  }
  return TM_OK;
}

/* ---- by search ---- */

static tm_status prove_by_search(proving *p, tm_error *error) {
  tm_common_proof *proof = p->proof;
  p->search.nodes_left = proof->most_nodes;
  proof->bound_ns = tm_max_u64(proof->bound_ns, tm_common_search_run(&p->search));
  if (!proof->wants_marginals || !is_proven(p)) return TM_OK;
  solve_again(p);
  TM_TRY(tm_elimination_marginals(&proof->elimination, proof->marginals, p->arena, error));
  for (uint64_t i = 0; i < p->unary_count; i++) proof->marginals[i] = tm_max_u64(proof->marginals[i], proof->bound_ns);
  return TM_OK;
}

/* ---- one after the other ---- */

/* A search that ends before it has left out every use once tells little more than the tolls did. */
static bool is_search_in_vain(const proving *p) {
  const tm_common_proof *proof = p->proof;
  return !proof->wants_marginals && tm_common_proof_is_close(p->search.best_price, proof->bound_ns) &&
         proof->common->use_count >= proof->most_nodes;
}

static tm_status prove(proving *p, tm_error *error) {
  if (p->proof->elimination.never != TM_TABLE_NEVER_SMALL) return TM_OK;
  if (find_plan(p)) {
    if (p->proof->wants_marginals) TM_TRY(prove_by_marginals(p, error));
    else prove_by_moves(p);
  }
  return is_proven(p) || is_search_in_vain(p) ? TM_OK : prove_by_search(p, error);
}

tm_status tm_common_proof_run(tm_common_proof *proof, tm_arena *arena, tm_error *error) {
  proving p = { .proof = proof, .arena = arena };
  TM_TRY(begin(&p, error));
  TM_TRY(prove(&p, error));
  proof->price = p.search.best_price;
  proof->bound_ns = tm_min_u64(proof->bound_ns, price_of(&p));
  return TM_OK;
}
