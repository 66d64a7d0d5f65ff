/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/ranks.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* What labels do with a memory. */
#define WRITES 1u
#define READS  2u

#define LARGEST_SCALE (UINT64_C(1) << 20)

/* ---- outlook ---- */

/* What outlooks are made with. */
typedef struct outlook_maker {
  const tm_problem_index *index;
  uint64_t *through_ns;         /* [label]: the outlook and what the label itself takes; TM_SOLVER_NEVER: as the outlook */
  uint64_t *known_ns;           /* [memory]: the least time after operation known_op[memory]: labels of one mostly share few memories */
  uint32_t *known_op;
} outlook_maker;

/* The least time from when value `v` is in `memory` until everything that reads it there or elsewhere is over. */
static uint64_t outlook_of_value(const outlook_maker *maker, uint32_t v, uint32_t memory) {
  const tm_problem_index *index = maker->index;
  const tm_solver_problem *problem = index->problem;
  const uint32_t wanted = problem->values[v].wanted;
  uint64_t longest = wanted == TM_SOLVER_NONE ? 0 : tm_solver_copy_ns(problem, v, memory, wanted);
  for (uint32_t i = index->flow.first_reader[v]; i < index->flow.first_reader[v + 1] && longest != TM_SOLVER_NEVER; i++) {
    const tm_solver_op *reader = &problem->ops[index->flow.readers[i]];
    uint64_t least = TM_SOLVER_NEVER;
    for (uint32_t l = reader->first_label; l < reader->first_label + reader->label_count; l++) {
      const uint64_t through_ns = maker->through_ns[l];
      if (through_ns >= least) continue;
      least = tm_min_u64(least, tm_solver_add(tm_solver_copy_ns(problem, v, memory, problem->labels[l].input_memory), through_ns));
    }
    longest = tm_max_u64(longest, least);
  }
  return longest;
}

static bool has_homes_in_reach(const tm_solver_problem *problem, const tm_solver_op *op, uint32_t memory) {
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t v = problem->inputs[i], home = problem->values[v].home;
    if (home != TM_SOLVER_NONE && tm_solver_copy_ns(problem, v, home, memory) == TM_SOLVER_NEVER) return false;
  }
  return true;
}

static uint64_t outlook_of_label(const outlook_maker *maker, uint32_t o, uint32_t l) {
  const tm_problem_index *index = maker->index;
  const tm_solver_problem *problem = index->problem;
  const tm_solver_label *label = &problem->labels[l];
  if (label->cost_ns == TM_SOLVER_NEVER || !has_homes_in_reach(problem, &problem->ops[o], label->input_memory)) {
    return TM_SOLVER_NEVER;
  }
  if (maker->known_op[label->output_memory] != o) {
    uint64_t longest = 0;
    for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
      longest = tm_max_u64(longest, outlook_of_value(maker, index->flow.outputs[i], label->output_memory));
    }
    maker->known_ns[label->output_memory] = longest;
    maker->known_op[label->output_memory] = o;
  }
  return maker->known_ns[label->output_memory];
}

static tm_status make_outlook(const tm_problem_index *index, tm_arena *arena, tm_ranks *ranks, tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  const outlook_maker maker = { index, tm_arena_alloc(arena, (uint64_t)problem->label_count * sizeof *maker.through_ns),
                                tm_arena_alloc(arena, (uint64_t)problem->memory_count * sizeof *maker.known_ns),
                                tm_arena_alloc(arena, (uint64_t)problem->memory_count * sizeof *maker.known_op) };
  if (maker.through_ns == NULL || maker.known_ns == NULL || maker.known_op == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to rank operations");
  for (uint32_t m = 0; m < problem->memory_count; m++) maker.known_op[m] = TM_SOLVER_NONE;
  for (uint32_t o = problem->op_count; o-- > 0;) {
    const tm_solver_op *op = &problem->ops[o];
    bool can_run = false;
    for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
      ranks->outlook_ns[l] = outlook_of_label(&maker, o, l);
      maker.through_ns[l] = tm_solver_add(problem->labels[l].cost_ns, ranks->outlook_ns[l]);
      can_run = can_run || ranks->outlook_ns[l] != TM_SOLVER_NEVER;
    }
    if (!can_run) return tm_fail(error, TM_ERROR_NO_DEVICE, "operation %u can run nowhere that its result could be used", o);
  }
  return TM_OK;
}

/* ---- means ---- */

/* sum * scale / count, rounded down; count * scale must fit. */
static uint64_t mean(uint64_t sum, uint64_t count, uint64_t scale) {
  if (count == 0) return 0;
  if (sum / count >= TM_SOLVER_MOST_NS / scale) return TM_SOLVER_MOST_NS;
  return sum / count * scale + sum % count * scale / count;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* A scale that makes this denominator exact, too, if that does not lead too far. */
static uint64_t widen(uint64_t scale, uint64_t count) {
  if (count == 0 || count > LARGEST_SCALE || scale % count == 0) return scale;
  const uint64_t wider = scale / greatest_divisor(scale, count) * count;
  return wider <= LARGEST_SCALE ? wider : scale;
}

typedef struct mean_parts {
  uint64_t *sum_ns;             /* [op], then [size class] */
  uint32_t *counts;
} mean_parts;

/* For sums over an operation's devices of the least that any of a device's labels has. */
typedef struct group_least {
  const tm_label_groups *groups;
  uint64_t *least_ns;           /* [group], of the operation seen_op[group] */
  uint32_t *seen_op;
} group_least;

static uint64_t add_up_groups(const tm_solver_problem *problem, const tm_ranks *ranks, uint32_t o, bool of_outlooks,
                              group_least *known, uint32_t *out_count) {
  const tm_solver_op *op = &problem->ops[o];
  uint64_t sum_ns = 0;
  *out_count = 0;
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    const uint32_t group = known->groups->of_label[l];
    const uint64_t time_ns = of_outlooks ? ranks->outlook_ns[l] : problem->labels[l].cost_ns;
    if (ranks->outlook_ns[l] == TM_SOLVER_NEVER) continue;
    if (known->seen_op[group] != o) {
      sum_ns = tm_solver_add(sum_ns, time_ns);
      ++*out_count;
    } else if (time_ns < known->least_ns[group]) {
      sum_ns -= known->least_ns[group] - time_ns;
    } else {
      continue;
    }
    known->seen_op[group] = o;
    known->least_ns[group] = time_ns;
  }
  return sum_ns;
}

static void clear_known(group_least *known) {
  memset(known->seen_op, 0xff, known->groups->count * sizeof *known->seen_op);          /* TM_SOLVER_NONE */
}

/* `use`: WRITES and READS of each memory. */
static void add_up_copies(const tm_solver_problem *problem, const uint8_t *use, mean_parts *parts) {
  const uint32_t memories = problem->memory_count, pairs = memories * memories;
  const uint64_t *copy_ns = problem->copy_ns;
  for (uint32_t class = 0; class < problem->size_class_count; class++) {
    const uint64_t part = (uint64_t)problem->op_count + class;
    for (uint32_t pair = 0; pair < pairs; pair++, copy_ns++) {
      const uint32_t from = pair / memories, to = pair % memories;
      if (from == to || (use[from] & WRITES) == 0 || (use[to] & READS) == 0 || *copy_ns == TM_SOLVER_NEVER) continue;
      parts->sum_ns[part] = tm_solver_add(parts->sum_ns[part], *copy_ns);
      parts->counts[part]++;
    }
  }
}

/* So large that no way through the graph can come near the end of the numbers. */
static uint64_t limit_scale(const tm_solver_problem *problem, const mean_parts *parts, uint64_t scale) {
  uint64_t all_ns = 1;
  for (uint32_t o = 0; o < problem->op_count; o++) all_ns = tm_solver_add(all_ns, parts->sum_ns[o]);
  for (uint32_t v = 0; v < problem->value_count; v++) {
    all_ns = tm_solver_add(all_ns, parts->sum_ns[problem->op_count + problem->values[v].size_class]);
  }
  while (scale > 1 && all_ns > TM_SOLVER_MOST_NS / scale) scale /= 2;
  return scale;
}

static void fill_means(const tm_solver_problem *problem, const mean_parts *parts, group_least *known, tm_ranks *ranks) {
  clear_known(known);
  for (uint32_t o = 0; o < problem->op_count; o++) {
    uint32_t count;
    const uint64_t outlooks_ns = add_up_groups(problem, ranks, o, true, known, &count);
    ranks->mean_outlook_ns[o] = mean(outlooks_ns, count, ranks->scale);
    ranks->mean_ns[o] = mean(parts->sum_ns[o], parts->counts[o], ranks->scale);
  }
  for (uint32_t class = 0; class < problem->size_class_count; class++) {
    const uint64_t part = (uint64_t)problem->op_count + class;
    ranks->mean_copy_ns[class] = mean(parts->sum_ns[part], parts->counts[part], ranks->scale);
  }
}

static tm_status make_means(const tm_problem_index *index, const tm_label_groups *groups, tm_arena *arena, tm_ranks *ranks,
                            tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  const uint64_t part_count = (uint64_t)problem->op_count + problem->size_class_count;
  mean_parts parts = { tm_arena_calloc(arena, part_count, sizeof *parts.sum_ns),
                       tm_arena_calloc(arena, part_count, sizeof *parts.counts) };
  group_least known = { groups, tm_arena_alloc(arena, (uint64_t)groups->count * sizeof *known.least_ns),
                        tm_arena_alloc(arena, (uint64_t)groups->count * sizeof *known.seen_op) };
  uint8_t *use = tm_arena_calloc(arena, problem->memory_count, sizeof *use);
  if (parts.sum_ns == NULL || parts.counts == NULL || known.least_ns == NULL || known.seen_op == NULL || use == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to rank operations");
  }
  for (uint32_t l = 0; l < problem->label_count; l++) {
    if (ranks->outlook_ns[l] == TM_SOLVER_NEVER) continue;
    use[problem->labels[l].output_memory] |= WRITES;
    use[problem->labels[l].input_memory] |= READS;
  }
  clear_known(&known);
  for (uint32_t o = 0; o < problem->op_count; o++) {
    parts.sum_ns[o] = add_up_groups(problem, ranks, o, false, &known, &parts.counts[o]);
  }
  add_up_copies(problem, use, &parts);
  ranks->scale = 1;
  for (uint64_t i = 0; i < part_count; i++) ranks->scale = widen(ranks->scale, parts.counts[i]);
  ranks->scale = limit_scale(problem, &parts, ranks->scale);
  fill_means(problem, &parts, &known, ranks);
  return TM_OK;
}

/* ---- ranks ---- */

static uint64_t upward_of(const tm_problem_index *index, const tm_ranks *ranks, uint32_t o) {
  const tm_solver_problem *problem = index->problem;
  uint64_t longest = 0;
  for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
    const uint32_t v = index->flow.outputs[i];
    const uint64_t copy_ns = ranks->mean_copy_ns[problem->values[v].size_class];
    if (problem->values[v].wanted != TM_SOLVER_NONE) longest = tm_max_u64(longest, copy_ns);
    for (uint32_t use = index->flow.first_reader[v]; use < index->flow.first_reader[v + 1]; use++) {
      longest = tm_max_u64(longest, tm_solver_add(copy_ns, ranks->upward_ns[index->flow.readers[use]]));
    }
  }
  return tm_solver_add(ranks->mean_ns[o], longest);
}

static uint64_t downward_of(const tm_solver_problem *problem, const tm_ranks *ranks, uint32_t o) {
  const tm_solver_op *op = &problem->ops[o];
  uint64_t longest = 0;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const tm_solver_value *value = &problem->values[problem->inputs[i]];
    if (value->producer == TM_SOLVER_NONE) continue;
    const uint64_t before_ns = tm_solver_add(ranks->downward_ns[value->producer], ranks->mean_ns[value->producer]);
    longest = tm_max_u64(longest, tm_solver_add(before_ns, ranks->mean_copy_ns[value->size_class]));
  }
  return longest;
}

tm_status tm_ranks_make(const tm_problem_index *index, const tm_label_groups *groups, tm_arena *arena, tm_ranks *out_ranks,
                        tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  const uint64_t ops = problem->op_count;
  tm_ranks ranks = { 1,
                     tm_arena_alloc(arena, ops * sizeof *ranks.mean_ns),
                     tm_arena_alloc(arena, problem->size_class_count * sizeof *ranks.mean_copy_ns),
                     tm_arena_alloc(arena, ops * sizeof *ranks.upward_ns),
                     tm_arena_alloc(arena, ops * sizeof *ranks.downward_ns),
                     tm_arena_alloc(arena, ops * sizeof *ranks.mean_outlook_ns),
                     tm_arena_alloc(arena, problem->label_count * sizeof *ranks.outlook_ns) };
  if (ranks.mean_ns == NULL || ranks.mean_copy_ns == NULL || ranks.upward_ns == NULL || ranks.downward_ns == NULL ||
      ranks.mean_outlook_ns == NULL || ranks.outlook_ns == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to rank operations");
  }
  memset(ranks.outlook_ns, 0xff, problem->label_count * sizeof *ranks.outlook_ns);      /* TM_SOLVER_NEVER: nobody's */
  TM_TRY(make_outlook(index, arena, &ranks, error));
  TM_TRY(make_means(index, groups, arena, &ranks, error));
  for (uint32_t o = problem->op_count; o-- > 0;) ranks.upward_ns[o] = upward_of(index, &ranks, o);
  for (uint32_t o = 0; o < problem->op_count; o++) ranks.downward_ns[o] = downward_of(problem, &ranks, o);
  *out_ranks = ranks;
  return TM_OK;
}

void tm_ranks_follow(const tm_problem_index *index, const uint32_t *labels, uint64_t *out_upward_ns) {
  const tm_solver_problem *problem = index->problem;
  for (uint32_t o = problem->op_count; o-- > 0;) {
    const uint32_t from = problem->labels[labels[o]].output_memory;
    uint64_t longest = 0;
    for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
      const uint32_t v = index->flow.outputs[i], wanted = problem->values[v].wanted;
      if (wanted != TM_SOLVER_NONE) longest = tm_max_u64(longest, tm_solver_copy_ns(problem, v, from, wanted));
      for (uint32_t use = index->flow.first_reader[v]; use < index->flow.first_reader[v + 1]; use++) {
        const uint32_t reader = index->flow.readers[use];
        const uint64_t copy_ns = tm_solver_copy_ns(problem, v, from, problem->labels[labels[reader]].input_memory);
        longest = tm_max_u64(longest, tm_solver_add(copy_ns, out_upward_ns[reader]));
      }
    }
    out_upward_ns[o] = tm_solver_add(problem->labels[labels[o]].cost_ns, longest);
  }
}
