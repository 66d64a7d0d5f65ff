/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/factor_graph.h"

#include "solver/growing.h"

#define MOST_SHARED 15u                 /* memories that one table may take the place of bits for */

typedef struct graph_maker {
  tm_factor_graph *graph;
  tm_factor_rules  rules;
  tm_arena        *arena;
  tm_growing       factors;     /* tm_factor */
  tm_growing       bits;        /* uint64_t: what a set bit costs by itself */
  tm_growing       bit_ops;     /* uint32_t */
  tm_growing       states;      /* uint32_t [variable]: all zero between uses */
  uint32_t        *may_read;    /* [memory]: how many readers of the value at hand may read there */
  uint32_t        *last_reader; /* [memory] */
  uint32_t        *touched;     /* memories with may_read != 0, in the order of ranks in which readers name them */
  uint32_t         touched_count;
} graph_maker;

static const tm_choice *choice_of(const tm_factor_graph *graph, uint32_t op, const uint32_t *states) {
  return &graph->choices->items[graph->choices->first[op] + states[op]];
}

static uint32_t source_memory(const tm_factor_graph *graph, uint32_t value, const uint32_t *states) {
  const tm_solver_value *row = &graph->problem->values[value];
  return row->producer == TM_SOLVER_NONE ? row->home : choice_of(graph, row->producer, states)->output_memory;
}

static uint64_t value_cost(const tm_factor_graph *graph, uint32_t value, const uint32_t *states) {
  const uint32_t from = source_memory(graph, value, states), wanted = graph->problem->values[value].wanted;
  const uint32_t first = graph->flow->first_reader[value], end = graph->flow->first_reader[value + 1];
  uint64_t cost = 0;
  for (uint32_t i = first; i < end; i++) {
    const uint32_t to = choice_of(graph, graph->flow->readers[i], states)->input_memory;
    bool is_paid = to == from || to == wanted;
    for (uint32_t k = first; k < i && !is_paid; k++)
      is_paid = choice_of(graph, graph->flow->readers[k], states)->input_memory == to;
    if (!is_paid) cost = tm_solver_add(cost, tm_solver_copy_ns(graph->problem, value, from, to));
  }
  return cost;
}

static uint64_t share_cost(const tm_factor_graph *graph, const tm_factor *factor, const uint32_t *states) {
  const uint32_t to = choice_of(graph, factor->reader, states)->input_memory;
  if (to == graph->problem->values[factor->value].wanted) return 0;
  const uint64_t copy = tm_solver_copy_ns(graph->problem, factor->value, source_memory(graph, factor->value, states), to);
  return copy == TM_SOLVER_NEVER ? copy : copy / graph->sharers[(uint64_t)factor->value * graph->problem->memory_count + to];
}

uint64_t tm_factor_cost(const tm_factor_graph *graph, const tm_factor *factor, const uint32_t *states) {
  switch (factor->kind) {
    case TM_FACTOR_VALUE:
      return value_cost(graph, factor->value, states);
    case TM_FACTOR_COPY:
      if (choice_of(graph, factor->reader, states)->input_memory != factor->memory) return 0;
      return tm_solver_copy_ns(graph->problem, factor->value, source_memory(graph, factor->value, states), factor->memory);
    case TM_FACTOR_PRESENT:
      if (states[factor->bit] == 0) return 0;
      return tm_solver_copy_ns(graph->problem, factor->value, source_memory(graph, factor->value, states), factor->memory);
    case TM_FACTOR_SHARE:
      return share_cost(graph, factor, states);
    case TM_FACTOR_NEEDS:
      if (states[factor->bit] != 0) return 0;
      return choice_of(graph, factor->reader, states)->input_memory == factor->memory ? TM_SOLVER_NEVER : 0;
  }
  return TM_SOLVER_NEVER;
}

static uint32_t state_count(const graph_maker *maker, uint32_t variable) {
  return variable < maker->graph->problem->op_count ? tm_choices_count(maker->graph->choices, variable) : 2;
}

static uint64_t *unary_of(const graph_maker *maker, uint32_t variable) {
  const tm_factor_graph *graph = maker->graph;
  if (variable < graph->problem->op_count) return graph->unary + graph->choices->first[variable];
  return (uint64_t *)maker->bits.items + 2 * (uint64_t)(variable - graph->problem->op_count);
}

/* Adds what a factor over `variables` costs where it belongs: to the base, to one variable, or as a factor. */
static bool add_factor(graph_maker *maker, tm_factor *factor, const uint32_t *variables, uint32_t count) {
  factor->variable_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (state_count(maker, variables[i]) > 1) factor->variables[factor->variable_count++] = variables[i];
  }
  if (factor->variable_count == 0) {
    maker->graph->base_ns = tm_solver_add(maker->graph->base_ns, tm_factor_cost(maker->graph, factor, maker->states.items));
    return true;
  }
  if (factor->variable_count == 1) {
    const uint32_t variable = factor->variables[0];
    uint64_t *unary = unary_of(maker, variable);
    uint32_t *states = maker->states.items;
    for (uint32_t i = 0; i < state_count(maker, variable); i++) {
      states[variable] = i;
      unary[i] = tm_solver_add(unary[i], tm_factor_cost(maker->graph, factor, states));
    }
    states[variable] = 0;
    return true;
  }
  tm_factor *place = tm_growing_room(&maker->factors, maker->arena, 1, sizeof *factor);
  if (place == NULL || maker->factors.count == TM_SOLVER_NONE / 4) return false;
  *place = *factor;
  maker->factors.count++;
  return true;
}

/* Which memories the value may be read in, and by how many. */
static void count_readers(graph_maker *maker, uint32_t value) {
  const tm_flow *flow = maker->graph->flow;
  const tm_choices *choices = maker->graph->choices;
  maker->touched_count = 0;
  for (uint32_t i = flow->first_reader[value]; i < flow->first_reader[value + 1]; i++) {
    const uint32_t op = flow->readers[i];
    for (uint32_t c = choices->first[op]; c < choices->first[op + 1]; c++) {
      const uint32_t memory = choices->items[c].input_memory;
      if (maker->may_read[memory] != 0 && maker->last_reader[memory] == op) continue;
      if (maker->may_read[memory]++ == 0) maker->touched[maker->touched_count++] = memory;
      maker->last_reader[memory] = op;
    }
  }
}

/* Whether reading the value in this memory may ever cost something. */
static bool may_cost(const graph_maker *maker, uint32_t value, uint32_t memory) {
  const tm_factor_graph *graph = maker->graph;
  const tm_solver_value *row = &graph->problem->values[value];
  if (memory == row->wanted) return false;
  if (row->producer == TM_SOLVER_NONE) return tm_solver_copy_ns(graph->problem, value, row->home, memory) != 0;
  for (uint32_t c = graph->choices->first[row->producer]; c < graph->choices->first[row->producer + 1]; c++) {
    if (tm_solver_copy_ns(graph->problem, value, graph->choices->items[c].output_memory, memory) != 0) return true;
  }
  return false;
}

static bool add_bit(graph_maker *maker, uint32_t value, uint32_t memory) {
  const tm_factor_graph *graph = maker->graph;
  const uint32_t producer = graph->problem->values[value].producer;
  uint64_t *room = tm_growing_room(&maker->bits, maker->arena, 2, sizeof *room);
  uint32_t *state = tm_growing_room(&maker->states, maker->arena, 1, sizeof *state);
  uint32_t *op = tm_growing_room(&maker->bit_ops, maker->arena, 1, sizeof *op);
  if (room == NULL || state == NULL || op == NULL) return false;
  *op = producer != TM_SOLVER_NONE ? producer : graph->flow->readers[graph->flow->first_reader[value]];
  maker->bit_ops.count++;
  maker->states.count++;
  *state = 0;
  const uint32_t bit = graph->problem->op_count + (uint32_t)(maker->bits.count / 2);
  room[0] = room[1] = 0;
  maker->bits.count += 2;
  tm_factor factor = { .kind = TM_FACTOR_PRESENT, .value = value, .memory = memory, .reader = TM_SOLVER_NONE, .bit = bit };
  const uint32_t sources[] = { bit, producer };
  if (!add_factor(maker, &factor, sources, producer == TM_SOLVER_NONE ? 1 : 2)) return false;
  factor.kind = TM_FACTOR_NEEDS;
  for (uint32_t i = graph->flow->first_reader[value]; i < graph->flow->first_reader[value + 1]; i++) {
    factor.reader = graph->flow->readers[i];
    const uint32_t pair[] = { bit, factor.reader };
    bool may_need = false;
    for (uint32_t c = graph->choices->first[factor.reader]; c < graph->choices->first[factor.reader + 1]; c++)
      may_need = may_need || graph->choices->items[c].input_memory == memory;
    if (may_need && !add_factor(maker, &factor, pair, 2)) return false;
  }
  return true;
}

static bool add_bits(graph_maker *maker, uint32_t value) {
  const uint32_t producer = maker->graph->problem->values[value].producer;
  for (uint32_t i = 0; i < maker->touched_count; i++) {
    const uint32_t memory = maker->touched[i], reader = maker->last_reader[memory];
    if (!may_cost(maker, value, memory)) continue;
    tm_factor factor = { .kind = TM_FACTOR_COPY, .value = value, .memory = memory, .reader = reader, .bit = TM_SOLVER_NONE };
    const uint32_t pair[] = { reader, producer };
    const bool is_added = maker->may_read[memory] == 1 ? add_factor(maker, &factor, pair, producer == TM_SOLVER_NONE ? 1 : 2)
                                                       : add_bit(maker, value, memory);
    if (!is_added) return false;
  }
  return true;
}

static bool add_shares(graph_maker *maker, uint32_t value) {
  const tm_factor_graph *graph = maker->graph;
  const uint32_t producer = graph->problem->values[value].producer;
  for (uint32_t i = 0; i < maker->touched_count; i++)
    graph->sharers[(uint64_t)value * graph->problem->memory_count + maker->touched[i]] = maker->may_read[maker->touched[i]];
  for (uint32_t i = graph->flow->first_reader[value]; i < graph->flow->first_reader[value + 1]; i++) {
    const uint32_t reader = graph->flow->readers[i], pair[] = { reader, producer };
    tm_factor factor = { .kind = TM_FACTOR_SHARE, .value = value, .memory = TM_SOLVER_NONE, .reader = reader };
    factor.bit = TM_SOLVER_NONE;
    if (!add_factor(maker, &factor, pair, producer == TM_SOLVER_NONE ? 1 : 2)) return false;
  }
  return true;
}

/* One table over everybody, unless bits promise smaller ones: they take two states each where readers take theirs. */
static bool is_one_table_better(const graph_maker *maker, uint32_t value, uint32_t shared) {
  const tm_flow *flow = maker->graph->flow;
  const uint32_t first = flow->first_reader[value], count = flow->first_reader[value + 1] - first;
  if (count == 1) return true;
  if (count >= TM_FACTOR_MOST_VARIABLES) return false;
  if (shared > MOST_SHARED) return false;
  uint64_t states = 1;
  for (uint32_t i = 0; i < count && states <= UINT64_C(2) << MOST_SHARED; i++)
    states *= tm_choices_count(maker->graph->choices, flow->readers[first + i]);
  return states <= UINT64_C(2) << shared;
}

/* The copy that the end of the graph asks for. */
static tm_status add_wanted(graph_maker *maker, uint32_t value, tm_error *error) {
  const tm_factor_graph *graph = maker->graph;
  const tm_solver_value *row = &graph->problem->values[value];
  if (row->wanted == TM_SOLVER_NONE) return TM_OK;
  if (row->producer == TM_SOLVER_NONE) {
    const uint64_t copy = tm_solver_copy_ns(graph->problem, value, row->home, row->wanted);
    if (copy == TM_SOLVER_NEVER)
      return tm_fail(error, TM_ERROR_NO_DEVICE, "value %u cannot get from memory %u to memory %u", value, row->home, row->wanted);
    maker->graph->base_ns = tm_solver_add(graph->base_ns, copy);
    return TM_OK;
  }
  for (uint32_t c = graph->choices->first[row->producer]; c < graph->choices->first[row->producer + 1]; c++) {
    const uint64_t copy = tm_solver_copy_ns(graph->problem, value, graph->choices->items[c].output_memory, row->wanted);
    graph->unary[c] = tm_solver_add(graph->unary[c], copy);
  }
  return TM_OK;
}

static tm_status add_value(graph_maker *maker, uint32_t value, tm_error *error) {
  TM_TRY(add_wanted(maker, value, error));
  const tm_flow *flow = maker->graph->flow;
  const uint32_t first = flow->first_reader[value], count = flow->first_reader[value + 1] - first;
  if (count == 0 || (maker->rules.is_left_out != NULL && maker->rules.is_left_out[value])) return TM_OK;
  count_readers(maker, value);
  uint32_t costly = 0, shared = 0;
  for (uint32_t i = 0; i < maker->touched_count; i++) {
    if (!may_cost(maker, value, maker->touched[i])) continue;
    costly++;
    shared += maker->may_read[maker->touched[i]] > 1;
  }
  bool is_added = true;
  if (costly != 0 && is_one_table_better(maker, value, shared)) {
    uint32_t variables[TM_FACTOR_MOST_VARIABLES], variable_count = 0;
    if (maker->graph->problem->values[value].producer != TM_SOLVER_NONE)
      variables[variable_count++] = maker->graph->problem->values[value].producer;
    for (uint32_t i = 0; i < count; i++) variables[variable_count++] = flow->readers[first + i];
    tm_factor factor = { .kind = TM_FACTOR_VALUE, .value = value, .memory = TM_SOLVER_NONE, .reader = TM_SOLVER_NONE };
    factor.bit = TM_SOLVER_NONE;
    is_added = add_factor(maker, &factor, variables, variable_count);
  } else if (costly != 0) {
    is_added = maker->rules.is_shared_out ? add_shares(maker, value) : add_bits(maker, value);
  }
  for (uint32_t i = 0; i < maker->touched_count; i++) maker->may_read[maker->touched[i]] = 0;
  return is_added ? TM_OK
                  : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the factors of %u operations",
                            maker->graph->problem->op_count);
}

/* Variables get their final places once their number is known. */
static bool place_variables(graph_maker *maker) {
  tm_factor_graph *graph = maker->graph;
  const uint32_t ops = graph->problem->op_count, choices = graph->choices->first[ops];
  const uint32_t bits = (uint32_t)(maker->bits.count / 2);
  graph->variable_count = ops + bits;
  graph->state_counts = tm_arena_alloc(maker->arena, graph->variable_count * sizeof(uint32_t));
  graph->first_unary = tm_arena_alloc(maker->arena, graph->variable_count * sizeof(uint64_t));
  uint64_t *unary = tm_arena_alloc(maker->arena, (choices + 2 * (uint64_t)bits) * sizeof *unary);
  if (graph->state_counts == NULL || graph->first_unary == NULL || unary == NULL) return false;
  if (choices != 0) memcpy(unary, graph->unary, choices * sizeof *unary);
  if (bits != 0) memcpy(unary + choices, maker->bits.items, 2 * (uint64_t)bits * sizeof *unary);
  graph->unary = unary;
  for (uint32_t i = 0; i < graph->variable_count; i++) {
    graph->state_counts[i] = state_count(maker, i);
    graph->first_unary[i] = i < ops ? graph->choices->first[i] : choices + 2 * (uint64_t)(i - ops);
  }
  graph->bit_ops = maker->bit_ops.items;
  graph->factors = maker->factors.items;
  graph->factor_count = (uint32_t)maker->factors.count;
  return true;
}

tm_status tm_factor_graph_init(tm_factor_graph *graph, const tm_solver_problem *p, const tm_choices *choices, const tm_flow *flow,
                               tm_factor_rules rules, tm_arena *arena, tm_error *error) {
  const uint32_t choice_count = choices->first[p->op_count];
  *graph = (tm_factor_graph){ .problem = p, .choices = choices, .flow = flow };
  graph_maker maker = { .graph = graph, .rules = rules, .arena = arena };
  graph->unary = tm_arena_alloc(arena, choice_count * sizeof(uint64_t));
  maker.states = (tm_growing){ tm_arena_calloc(arena, p->op_count, sizeof(uint32_t)), p->op_count, p->op_count };
  maker.may_read = tm_arena_calloc(arena, p->memory_count, sizeof(uint32_t));
  maker.last_reader = tm_arena_alloc(arena, p->memory_count * sizeof(uint32_t));
  maker.touched = tm_arena_alloc(arena, p->memory_count * sizeof(uint32_t));
  if (rules.is_shared_out)
    graph->sharers = tm_arena_calloc(arena, (uint64_t)p->value_count * p->memory_count, sizeof *graph->sharers);
  if ((rules.is_shared_out && graph->sharers == NULL) || graph->unary == NULL || maker.states.items == NULL || maker.may_read == NULL ||
      maker.last_reader == NULL || maker.touched == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the factors of %u operations", p->op_count);
  for (uint32_t c = 0; c < choice_count; c++) graph->unary[c] = choices->items[c].cost_ns;
  for (uint32_t v = 0; v < p->value_count; v++) TM_TRY(add_value(&maker, v, error));
  if (!place_variables(&maker))
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the factors of %u operations", p->op_count);
  return TM_OK;
}
