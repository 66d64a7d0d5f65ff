/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/elimination.h"

#include <string.h>

#include "base/checked.h"

static uint64_t to_table(const tm_elimination *e, uint64_t cost) { return cost == TM_SOLVER_NEVER ? e->never : cost; }
static uint64_t from_table(const tm_elimination *e, uint64_t cost) { return cost >= e->never ? TM_SOLVER_NEVER : cost; }

static uint64_t share_of(const tm_elimination *e, uint64_t cost, const tm_elimination_step *step) {
  if (step->share_count < 2 || cost >= e->never) return cost;
  return cost / step->share_count + (step->share < cost % step->share_count);
}

/* The cost that, added to `part`, makes `whole`; anything where nothing can be added. */
static uint64_t rest_of(const tm_elimination *e, uint64_t whole, uint64_t part) {
  if (part >= e->never) return 0;
  return whole >= e->never ? e->never : whole - part;
}

/* As most factors are: a value that one operation makes and one or two others read, each with several states. */
static bool is_few_readings(const tm_factor_graph *graph, const tm_factor *factor) {
  const uint32_t readers = graph->flow->first_reader[factor->value + 1] - graph->flow->first_reader[factor->value];
  const bool is_made = graph->problem->values[factor->value].producer != TM_SOLVER_NONE;
  return factor->kind == TM_FACTOR_VALUE && is_made && readers <= 2 && factor->variable_count == 1 + readers;
}

static uint64_t stride_of(const tm_elimination *e, const tm_elimination_row *row, uint32_t variable) {
  uint64_t stride = 1;
  for (uint32_t i = row->variable_count; i-- > 0 && row->variables[i] != variable;) stride *= e->graph->state_counts[row->variables[i]];
  return stride;
}

/* The entries of one state of the producer. */
static void fill_readings(const tm_elimination *e, const tm_elimination_row *row, uint32_t value, uint32_t from, uint64_t *entries) {
  const tm_factor_graph *graph = e->graph;
  const uint32_t *readers = graph->flow->readers + graph->flow->first_reader[value];
  const uint32_t first = readers[0], second = row->variable_count == 3 ? readers[1] : TM_SOLVER_NONE;
  const uint32_t wanted = graph->problem->values[value].wanted, count = second == TM_SOLVER_NONE ? 1 : graph->state_counts[second];
  const uint64_t first_stride = stride_of(e, row, first), second_stride = count == 1 ? 0 : stride_of(e, row, second);
  const tm_choice *choices = graph->choices->items + graph->choices->first[first];
  const tm_choice *others = second == TM_SOLVER_NONE ? NULL : graph->choices->items + graph->choices->first[second];
  for (uint32_t i = 0; i < graph->state_counts[first]; i++) {
    const uint32_t to = choices[i].input_memory;
    const uint64_t copy = to == from || to == wanted ? 0 : tm_solver_copy_ns(graph->problem, value, from, to);
    for (uint32_t k = 0; k < count; k++) {
      const uint32_t too = others == NULL ? to : others[k].input_memory;
      const bool is_paid = too == to || too == from || too == wanted;
      const uint64_t sum = is_paid ? copy : tm_solver_add(copy, tm_solver_copy_ns(graph->problem, value, from, too));
      entries[i * first_stride + k * second_stride] = to_table(e, sum);
    }
  }
}

static void fill_value(const tm_elimination *e, uint32_t factor) {
  const tm_factor_graph *graph = e->graph;
  const tm_elimination_row *row = &e->rows[factor];
  const uint32_t value = graph->factors[factor].value, producer = graph->problem->values[value].producer;
  const tm_choice *made = graph->choices->items + graph->choices->first[producer];
  const uint64_t stride = stride_of(e, row, producer);
  for (uint32_t i = 0; i < graph->state_counts[producer]; i++)
    fill_readings(e, row, value, made[i].output_memory, row->table + i * stride);
}

/* `states` is zero for the factor's variables before and after. */
static void fill_factor(const tm_elimination *e, uint32_t factor, uint32_t *states) {
  const tm_elimination_row *row = &e->rows[factor];
  if (is_few_readings(e->graph, &e->graph->factors[factor])) {
    fill_value(e, factor);
    return;
  }
  uint64_t *entry = row->table;
  for (bool is_more = true; is_more;) {
    *entry++ = to_table(e, tm_factor_cost(e->graph, &e->graph->factors[factor], states));
    is_more = false;
    for (uint32_t k = row->variable_count; k-- > 0 && !is_more;) {
      const uint32_t v = row->variables[k];
      is_more = ++states[v] < e->graph->state_counts[v];
      if (!is_more) states[v] = 0;
    }
  }
}

static uint64_t entries_over(const tm_factor_graph *graph, const uint32_t *variables, uint32_t count) {
  uint64_t entries = 1;
  for (uint32_t i = 0; i < count; i++) entries *= graph->state_counts[variables[i]];
  return entries;
}

/* Scopes and sizes; tables come later.  Returns the largest factor's entries. */
static uint64_t fill_rows(tm_elimination *e, uint64_t *out_entries) {
  const tm_factor_graph *graph = e->graph;
  const tm_elimination_order *order = e->order;
  uint64_t largest = 0, entries = 0;
  for (uint32_t f = 0; f < graph->factor_count; f++) {
    const uint32_t *variables = order->scopes + order->first_scope[f], count = graph->factors[f].variable_count;
    e->rows[f] = (tm_elimination_row){ NULL, variables, entries_over(graph, variables, count), count, 0 };
    largest = tm_max_u64(largest, e->rows[f].entries);
    entries += e->rows[f].entries;
  }
  for (uint32_t s = 0; s < order->step_count; s++) {
    const tm_elimination_step *step = &order->steps[s];
    e->rows[graph->factor_count + s] =
        (tm_elimination_row){ NULL, order->scopes + step->first_scope, step->message_entries, step->scope_count, 0 };
    entries += step->message_entries;
  }
  *out_entries = entries;
  return largest;
}

/* In the order in which they are used: members before their message. */
static void place_tables(tm_elimination *e, uint64_t *pool) {
  for (uint32_t s = 0; s < e->order->step_count; s++) {
    const tm_elimination_step *step = &e->order->steps[s];
    for (uint32_t i = 0; i <= step->member_count; i++) {
      tm_elimination_row *row = i < step->member_count ? &e->rows[e->order->members[step->first_member + i]]
                                                       : &e->rows[e->graph->factor_count + s];
      if (row->table != NULL) continue;
      row->table = pool;
      pool += row->entries;
    }
  }
}

static uint64_t unary_count(const tm_factor_graph *graph) {
  const uint32_t count = graph->variable_count;
  return count == 0 ? 0 : graph->first_unary[count - 1] + graph->state_counts[count - 1];
}

static bool allocate(tm_elimination *e, tm_arena *arena) {
  const uint64_t row_count = (uint64_t)e->graph->factor_count + e->order->step_count;
  uint64_t entries;
  e->rows = tm_arena_alloc(arena, row_count * sizeof *e->rows);
  if (e->rows == NULL) return false;
  const uint64_t largest = fill_rows(e, &entries);
  e->table = tm_arena_alloc(arena, e->order->largest_entries * sizeof(uint64_t));
  e->shared = tm_arena_alloc(arena, largest * sizeof(uint64_t));
  uint64_t *pool = tm_arena_alloc(arena, entries * sizeof *pool);
  e->unary = tm_arena_alloc(arena, unary_count(e->graph) * sizeof *e->unary);
  e->is_new = tm_arena_calloc(arena, e->order->step_count, sizeof *e->is_new);
  if (e->table == NULL || e->shared == NULL || pool == NULL || e->unary == NULL || e->is_new == NULL) return false;
  place_tables(e, pool);
  return true;
}

static void begin_walk(const tm_elimination *e, const tm_elimination_step *step, uint32_t factor, tm_table_walk *walk) {
  const tm_elimination_row *row = &e->rows[factor];
  tm_table_walk_init(walk, e->graph->state_counts, step->variable, e->order->scopes + step->first_scope,
                     step->scope_count, row->variables, row->variable_count);
}

/* e->table = what the variable costs by itself + all members. */
static void sum_members(tm_elimination *e, const tm_elimination_step *step) {
  const tm_factor_graph *graph = e->graph;
  const uint64_t *unary = graph->unary + graph->first_unary[step->variable];
  uint64_t *entry = e->table;
  for (uint32_t state = 0; state < graph->state_counts[step->variable]; state++) {
    const uint64_t cost = share_of(e, to_table(e, unary[state]), step);
    for (uint64_t i = 0; i < step->message_entries; i++) *entry++ = cost;
  }
  for (uint32_t i = 0; i < step->member_count; i++) {
    const uint32_t member = e->order->members[step->first_member + i];
    const uint64_t *table = e->rows[member].table;
    tm_table_walk walk;
    begin_walk(e, step, member, &walk);
    if (member == step->shared_factor) {
      for (uint64_t k = 0; k < e->rows[member].entries; k++) e->shared[k] = share_of(e, table[k], step);
      table = e->shared;
    }
    tm_table_add_to(e->table, &walk, table);
    const uint32_t adds = e->never == TM_TABLE_NEVER ? TM_TABLE_ADDS : TM_TABLE_ADDS_SMALL;
    const bool is_last = i == step->member_count - 1 && e->never == TM_TABLE_NEVER;
    if (is_last || i % adds == adds - 1) tm_table_settle(e->table, step->entries);
  }
}

/* Says whether the message is another one now. */
static bool pass_up(tm_elimination *e, uint32_t step_number) {
  const tm_elimination_step *step = &e->order->steps[step_number];
  uint64_t *message = e->rows[e->graph->factor_count + step_number].table;
  uint64_t *least = e->table, changes = 0;
  const uint64_t *entry = e->table;
  sum_members(e, step);
  for (uint32_t state = 1; state < e->graph->state_counts[step->variable]; state++) {
    entry += step->message_entries;
    for (uint64_t i = 0; i < step->message_entries; i++) least[i] = entry[i] < least[i] ? entry[i] : least[i];
  }
  for (uint64_t i = 0; i < step->message_entries; i++) {
    const uint64_t settled = least[i] < e->never ? least[i] : e->never;
    changes |= message[i] ^ settled;
    message[i] = settled;
  }
  return changes != 0;
}

static bool has_news(const tm_elimination *e, const tm_elimination_step *step) {
  const uint32_t factors = e->graph->factor_count;
  const uint64_t first = e->graph->first_unary[step->variable], count = e->graph->state_counts[step->variable];
  for (uint64_t i = first; i < first + count; i++)
    if (e->unary[i] != e->graph->unary[i]) return true;
  for (uint32_t i = 0; i < step->member_count; i++) {
    const uint32_t member = e->order->members[step->first_member + i];
    if (member >= factors && e->is_new[member - factors]) return true;
  }
  return false;
}

static bool is_impossible(const tm_elimination *e, const uint64_t *message, uint64_t entries) {
  for (uint64_t i = 0; i < entries; i++) {
    if (message[i] < e->never) return false;
  }
  return true;
}

void tm_elimination_renew(tm_elimination *e) {
  const uint32_t factors = e->graph->factor_count;
  uint64_t total = to_table(e, e->graph->base_ns);
  e->impossible = TM_SOLVER_NONE;
  for (uint32_t s = 0; s < e->order->step_count; s++) {
    const tm_elimination_step *step = &e->order->steps[s];
    if (e->has_messages) e->is_new[s] = has_news(e, step) && pass_up(e, s);
    else (void)pass_up(e, s);
    if (step->scope_count == 0) total = tm_table_add(total, e->rows[factors + s].table[0]);
    if (e->impossible == TM_SOLVER_NONE && is_impossible(e, e->rows[factors + s].table, step->message_entries))
      e->impossible = step->variable;
  }
  if (e->order->step_count != 0) memcpy(e->unary, e->graph->unary, unary_count(e->graph) * sizeof *e->unary);
  e->has_messages = true;
  e->total_ns = from_table(e, total);
}

/* The largest cost that can be. */
static uint64_t most_of(const uint64_t *costs, uint64_t count) {
  uint64_t most = 0;
  for (uint64_t i = 0; i < count; i++) most = costs[i] < TM_TABLE_NEVER ? tm_max_u64(most, costs[i]) : most;
  return most;
}

/* Chooses the number that stands for never, and puts it into the factors. */
static void choose_never(tm_elimination *e) {
  const tm_factor_graph *graph = e->graph;
  uint64_t sum = tm_table_settled(graph->base_ns);
  for (uint32_t v = 0; v < graph->variable_count; v++)
    sum = tm_table_add(sum, most_of(graph->unary + graph->first_unary[v], graph->state_counts[v]));
  for (uint32_t f = 0; f < graph->factor_count; f++) sum = tm_table_add(sum, most_of(e->rows[f].table, e->rows[f].entries));
  if (sum > TM_TABLE_SMALL) return;
  e->never = TM_TABLE_NEVER_SMALL;
  for (uint32_t f = 0; f < graph->factor_count; f++) {
    for (uint64_t i = 0; i < e->rows[f].entries; i++) {
      if (e->rows[f].table[i] == TM_TABLE_NEVER) e->rows[f].table[i] = e->never;
    }
  }
}

tm_status tm_elimination_init(tm_elimination *e, const tm_factor_graph *graph, const tm_elimination_order *order, tm_arena *arena,
                              tm_error *error) {
  *e = (tm_elimination){ .graph = graph, .order = order, .never = TM_TABLE_NEVER };
  uint32_t *states = tm_arena_calloc(arena, graph->variable_count, sizeof *states);
  if (states == NULL || !allocate(e, arena))
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for %llu table entries", (unsigned long long)order->table_entries);
  for (uint32_t f = 0; f < graph->factor_count; f++) fill_factor(e, f, states);
  choose_never(e);
  tm_elimination_renew(e);
  return TM_OK;
}

static uint64_t entry_at(const tm_elimination *e, const tm_elimination_step *step, uint32_t factor, const uint32_t *states) {
  const tm_elimination_row *row = &e->rows[factor];
  uint64_t index = 0;
  for (uint32_t i = 0; i < row->variable_count; i++)
    index = index * e->graph->state_counts[row->variables[i]] + states[row->variables[i]];
  return factor == step->shared_factor ? share_of(e, row->table[index], step) : row->table[index];
}

/* Adds what a member of a step costs in each state of the step's variable, the others being as `states` has them. */
static void add_states(const tm_elimination *e, const tm_elimination_step *step, uint32_t member, const uint32_t *states,
                       uint64_t *costs) {
  const tm_elimination_row *row = &e->rows[member];
  uint64_t index = 0, stride = 1;
  for (uint32_t i = 0; i < row->variable_count; i++) {
    const bool is_own = row->variables[i] == step->variable;
    index = index * e->graph->state_counts[row->variables[i]] + (is_own ? 0 : states[row->variables[i]]);
    stride = is_own ? 1 : stride * e->graph->state_counts[row->variables[i]];
  }
  for (uint32_t state = 0; state < e->graph->state_counts[step->variable]; state++) {
    const uint64_t cost = row->table[index + state * stride];
    costs[state] = tm_table_add(costs[state], member == step->shared_factor ? share_of(e, cost, step) : cost);
  }
}

/* The first of the states in which the steps of one variable cost least. */
static uint32_t best_state(const tm_elimination *e, uint32_t first_step, uint32_t end_step, const uint32_t *states) {
  const uint32_t variable = e->order->steps[first_step].variable;
  const uint64_t *unary = e->graph->unary + e->graph->first_unary[variable];
  uint64_t *costs = e->table;
  uint32_t best = 0;
  for (uint32_t state = 0; state < e->graph->state_counts[variable]; state++) costs[state] = to_table(e, unary[state]);
  for (uint32_t s = first_step; s < end_step; s++) {
    const tm_elimination_step *step = &e->order->steps[s];
    for (uint32_t i = 0; i < step->member_count; i++) add_states(e, step, e->order->members[step->first_member + i], states, costs);
  }
  for (uint32_t state = 1; state < e->graph->state_counts[variable]; state++) best = costs[state] < costs[best] ? state : best;
  return best;
}

/* The first of the states that are best for one step alone. */
static uint32_t step_state(const tm_elimination *e, uint32_t step_number, uint32_t *states) {
  const tm_elimination_step *step = &e->order->steps[step_number];
  const uint64_t *unary = e->graph->unary + e->graph->first_unary[step->variable];
  uint64_t least = UINT64_MAX;
  uint32_t best = 0;
  for (uint32_t state = 0; state < e->graph->state_counts[step->variable]; state++) {
    uint64_t cost = share_of(e, to_table(e, unary[state]), step);
    states[step->variable] = state;
    for (uint32_t i = 0; i < step->member_count; i++)
      cost = tm_table_add(cost, entry_at(e, step, e->order->members[step->first_member + i], states));
    if (cost < least) best = state;
    if (cost < least) least = cost;
  }
  return best;
}

bool tm_elimination_agrees(const tm_elimination *e, uint32_t first_step, uint32_t end_step, uint32_t *states) {
  const uint32_t variable = e->order->steps[first_step].variable, kept = states[variable];
  const uint32_t first = step_state(e, first_step, states);
  bool is_agreed = true;
  for (uint32_t s = first_step + 1; s < end_step && is_agreed; s++) is_agreed = step_state(e, s, states) == first;
  states[variable] = kept;
  return is_agreed;
}

void tm_elimination_decode(const tm_elimination *e, uint32_t *states) {
  for (uint32_t end = e->order->step_count; end != 0;) {
    const uint32_t first = end - 1 - e->order->steps[end - 1].share;
    states[e->order->steps[first].variable] = best_state(e, first, end, states);
    end = first;
  }
}

/* Turns the message of a member into what the rest of the graph costs seen from it. */
static void pass_down(tm_elimination *e, const tm_elimination_step *step, uint32_t member, uint64_t *least) {
  tm_table_walk walk;
  begin_walk(e, step, member, &walk);
  const uint64_t entries = e->order->steps[member - e->graph->factor_count].message_entries;
  uint64_t *message = e->rows[member].table;
  for (uint64_t i = 0; i < entries; i++) least[i] = e->never;
  tm_table_lower(e->table, &walk, least);
  for (uint64_t i = 0; i < entries; i++) message[i] = rest_of(e, least[i], message[i]);
}

/* Of a variable in several steps, each step's bound holds: the highest is kept. */
static void keep_marginals(const tm_elimination *e, const tm_elimination_step *step, uint64_t *marginals) {
  uint64_t *marginal = marginals + e->graph->first_unary[step->variable];
  const uint64_t *entry = e->table;
  for (uint32_t state = 0; state < e->graph->state_counts[step->variable]; state++) {
    uint64_t least = e->never;
    for (uint64_t i = 0; i < step->message_entries; i++, entry++) least = *entry < least ? *entry : least;
    if (step->share == step->share_count - 1 || from_table(e, least) > marginal[state]) marginal[state] = from_table(e, least);
  }
}

tm_status tm_elimination_marginals(tm_elimination *e, uint64_t *marginals, tm_arena *arena, tm_error *error) {
  const uint32_t factors = e->graph->factor_count;
  e->has_messages = false;
  uint64_t *least = tm_arena_alloc(arena, e->order->largest_entries * sizeof *least);
  if (least == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for %llu entries",
                   (unsigned long long)e->order->largest_entries);
  for (uint32_t s = e->order->step_count; s-- > 0;) {
    const tm_elimination_step *step = &e->order->steps[s];
    uint64_t *rest = e->rows[factors + s].table;
    if (step->scope_count == 0) rest[0] = rest_of(e, to_table(e, e->total_ns), rest[0]);
    sum_members(e, step);
    for (uint32_t state = 0; state < e->graph->state_counts[step->variable]; state++) {
      uint64_t *entry = e->table + state * step->message_entries;
      for (uint64_t i = 0; i < step->message_entries; i++) entry[i] = tm_table_add(entry[i], rest[i]);
    }
    keep_marginals(e, step, marginals);
    for (uint32_t i = 0; i < step->member_count; i++) {
      const uint32_t member = e->order->members[step->first_member + i];
      if (member >= factors) pass_down(e, step, member, least);
    }
  }
  return TM_OK;
}
