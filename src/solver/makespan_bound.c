/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/makespan_bound.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "solver/label_groups.h"

/* Prices of resources, and rounds in which those in demand get dearer. */
#define FIRST_PRICE   UINT32_C(4096)
#define HIGHEST_PRICE (UINT32_C(1) << 20)
#define ROUNDS        12u
/* Resources up to which 16 times their number times any load fits. */
#define MOST_COMPARED (UINT64_C(1) << 16)

/* ---- the longest way ---- */

/* When the inputs of a label can be there at the soonest, counted from the start: known for those from the start only. */
static uint64_t start_of(const tm_solver_problem *problem, const tm_solver_op *op, uint32_t memory) {
  uint64_t latest = 0;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t v = problem->inputs[i], home = problem->values[v].home;
    if (home != TM_SOLVER_NONE) latest = tm_max_u64(latest, tm_solver_copy_ns(problem, v, home, memory));
  }
  return latest;
}

static uint64_t longest_way(const tm_solver_problem *problem, const uint64_t *outlook_ns) {
  uint64_t longest = 0;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    uint64_t least = TM_SOLVER_NEVER;
    for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
      if (outlook_ns[l] == TM_SOLVER_NEVER) continue;
      const uint64_t start_ns = start_of(problem, op, problem->labels[l].input_memory);
      least = tm_min_u64(least, tm_solver_add(start_ns, tm_solver_add(problem->labels[l].cost_ns, outlook_ns[l])));
    }
    longest = tm_max_u64(longest, least);
  }
  for (uint32_t v = 0; v < problem->value_count; v++) {
    const tm_solver_value *value = &problem->values[v];
    if (value->home == TM_SOLVER_NONE || value->wanted == TM_SOLVER_NONE) continue;
    longest = tm_max_u64(longest, tm_solver_copy_ns(problem, v, value->home, value->wanted));
  }
  return longest;
}

/* ---- work shared among resources ---- */

/* A label that can be, its cost shifted right so that nothing overflows and the bound stays one. */
typedef struct job_way {
  uint64_t cost;
  uint32_t resource;
  uint32_t label;
} job_way;

/* Operations of the same labels have the same choice, so they are one kind; what has the same place here and is another kind was
   forgotten, and comes again. */
#define KNOWN_KINDS 1024u

typedef struct shared_jobs {
  const tm_solver_problem *problem;
  const uint64_t *outlook_ns;
  job_way  *ways;               /* of the first kind, then of the second, ...: each has some */
  uint32_t *ends;               /* [kind]: of its ways */
  uint32_t *counts;             /* [kind]: operations */
  uint32_t *firsts;             /* [kind]: the operation that it was seen at */
  uint32_t *known;              /* a kind, or TM_SOLVER_NONE */
  uint32_t  kind_count;
  uint32_t *prices;             /* [resource] */
  uint64_t *load;               /* [resource] */
  uint8_t  *is_used;            /* [resource] */
  uint32_t  shift;
} shared_jobs;

/* For any prices of the resources' time, not all zero: the cheapest way to do everything, divided by what one unit of time
   on all of them is worth, is a time that nobody beats. */
static uint64_t priced_work(const shared_jobs *jobs) {
  uint64_t total = 0;
  uint32_t w = 0;
  for (uint32_t kind = 0; kind < jobs->kind_count; kind++) {
    const job_way *chosen = &jobs->ways[w];
    uint64_t least = chosen->cost * jobs->prices[chosen->resource];
    for (w++; w < jobs->ends[kind]; w++) {
      const job_way *way = &jobs->ways[w];
      const uint64_t priced = way->cost * jobs->prices[way->resource];
      if (priced > least || (priced == least && !tm_label_goes_first(jobs->problem, way->label, chosen->label))) continue;
      least = priced;
      chosen = way;
    }
    jobs->load[chosen->resource] += chosen->cost * jobs->counts[kind];
    total += least * jobs->counts[kind];
  }
  return total;
}

/* So that the dearest labels of all operations, shifted, stay below 2^43 together. */
static uint32_t find_shift(const tm_solver_problem *problem, const uint64_t *outlook_ns) {
  uint64_t most = 0;
  uint32_t shift = 0;
  for (uint32_t l = 0; l < problem->label_count; l++) {
    if (outlook_ns[l] != TM_SOLVER_NEVER) most = tm_max_u64(most, problem->labels[l].cost_ns);
  }
  while (most >> shift > (UINT64_C(1) << 43) / (problem->op_count + UINT64_C(1))) shift++;
  return shift;
}

/* Those with more than the mean load get dearer, the others cheaper, by a quarter at most and less every round.  Only ratios
   of loads count, so that the unit of time decides nothing. */
static void reprice(uint32_t *prices, uint64_t *load, const uint8_t *is_used, uint32_t count, uint32_t round) {
  uint64_t sum = 0, used = 0;
  for (uint32_t r = 0; r < count; r++) {
    sum += load[r];
    used += is_used[r];
  }
  const bool can_compare = sum != 0 && used <= MOST_COMPARED;
  for (uint32_t r = 0; r < count; r++) {
    const uint64_t step = prices[r] / (4 + round) + 1;
    const uint64_t relative = can_compare ? tm_min_u64(load[r] * 16 * used / sum, 32) : 16;       /* 16: the mean */
    const uint64_t price = prices[r] - step + step * relative / 16;
    prices[r] = is_used[r] ? (uint32_t)tm_min_u64(tm_max_u64(price, 1), HIGHEST_PRICE) : 0;
    load[r] = 0;
  }
}

static bool is_same_kind(const shared_jobs *jobs, uint32_t a, uint32_t b) {
  const tm_solver_op *x = &jobs->problem->ops[a], *y = &jobs->problem->ops[b];
  const tm_solver_label *labels = jobs->problem->labels;
  if (x->label_count != y->label_count) return false;
  for (uint32_t i = 0; i < x->label_count; i++) {
    const bool can = jobs->outlook_ns[x->first_label + i] != TM_SOLVER_NEVER;
    if (can != (jobs->outlook_ns[y->first_label + i] != TM_SOLVER_NEVER)) return false;
    if (memcmp(&labels[x->first_label + i], &labels[y->first_label + i], sizeof *labels) != 0) return false;
  }
  return true;
}

static uint32_t place_of_kind(const shared_jobs *jobs, uint32_t o) {
  const tm_solver_op *op = &jobs->problem->ops[o];
  uint64_t hash = op->label_count;
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++)
    hash = (hash ^ jobs->problem->labels[l].cost_ns) * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(hash >> 32) % KNOWN_KINDS;
}

static void add_kind(shared_jobs *jobs, uint32_t o) {
  const tm_solver_op *op = &jobs->problem->ops[o];
  uint32_t count = jobs->kind_count == 0 ? 0 : jobs->ends[jobs->kind_count - 1];
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    const tm_solver_label *label = &jobs->problem->labels[l];
    if (jobs->outlook_ns[l] == TM_SOLVER_NEVER) continue;
    jobs->ways[count++] = (job_way){ label->cost_ns >> jobs->shift, label->resource, l };
    jobs->is_used[label->resource] = 1;
  }
  jobs->ends[jobs->kind_count] = count;
  jobs->counts[jobs->kind_count] = 1;
  jobs->firsts[jobs->kind_count++] = o;
}

static void list_ways(shared_jobs *jobs) {
  jobs->shift = find_shift(jobs->problem, jobs->outlook_ns);
  for (uint32_t i = 0; i < KNOWN_KINDS; i++) jobs->known[i] = TM_SOLVER_NONE;
  for (uint32_t o = 0; o < jobs->problem->op_count; o++) {
    uint32_t *known = &jobs->known[place_of_kind(jobs, o)];
    if (*known != TM_SOLVER_NONE && is_same_kind(jobs, jobs->firsts[*known], o)) {
      jobs->counts[*known]++;
      continue;
    }
    *known = jobs->kind_count;
    add_kind(jobs, o);
  }
}

static uint64_t shared_work(const shared_jobs *jobs) {
  const uint32_t resources = jobs->problem->resource_count;
  uint64_t best = 0;
  for (uint32_t r = 0; r < resources; r++) jobs->prices[r] = jobs->is_used[r] ? FIRST_PRICE : 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint64_t worth = 0;
    for (uint32_t r = 0; r < resources; r++) worth += jobs->prices[r];
    const uint64_t total = priced_work(jobs);
    if (worth != 0) best = tm_max_u64(best, total / worth + (jobs->shift == 0 && total % worth != 0));
    reprice(jobs->prices, jobs->load, jobs->is_used, resources, round);
  }
  return best > TM_SOLVER_MOST_NS >> jobs->shift ? TM_SOLVER_MOST_NS : best << jobs->shift;
}

tm_status tm_makespan_bound_find(const tm_problem_index *index, const uint64_t *outlook_ns, tm_arena *arena, uint64_t *out_ns,
                                 tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  shared_jobs jobs = { .problem = problem, .outlook_ns = outlook_ns };
  jobs.ways = tm_arena_alloc(arena, problem->label_count * sizeof *jobs.ways);
  jobs.ends = tm_arena_alloc(arena, problem->op_count * sizeof *jobs.ends);
  jobs.counts = tm_arena_alloc(arena, problem->op_count * sizeof *jobs.counts);
  jobs.firsts = tm_arena_alloc(arena, problem->op_count * sizeof *jobs.firsts);
  jobs.known = tm_arena_alloc(arena, KNOWN_KINDS * sizeof *jobs.known);
  jobs.prices = tm_arena_calloc(arena, problem->resource_count, sizeof *jobs.prices);
  jobs.load = tm_arena_calloc(arena, problem->resource_count, sizeof *jobs.load);
  jobs.is_used = tm_arena_calloc(arena, problem->resource_count, sizeof *jobs.is_used);
  if (jobs.ways == NULL || jobs.ends == NULL || jobs.counts == NULL || jobs.firsts == NULL || jobs.known == NULL ||
      jobs.prices == NULL || jobs.load == NULL || jobs.is_used == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a bound");
  list_ways(&jobs);
  *out_ns = tm_max_u64(longest_way(problem, outlook_ns), shared_work(&jobs));
  return TM_OK;
}
