/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/elimination_order.h"

#include <stdlib.h>

#include "solver/growing.h"
#include "solver/key_queue.h"

#define NONE TM_SOLVER_NONE
#define LARGEST_KEY (TM_KEY_QUEUE_KEYS - 2)
#define LATER_KEY (TM_KEY_QUEUE_KEYS - 1)       /* in too many factors to be looked at: somebody else first */
#define MOST_FACTORS_LOOKED_AT 32u
#define LEAST_HUB_FACTORS 4u
#define HOPELESS_TIMES 16u
#define WINDOW_VARIABLES 2048u          /* of the graph's own order, that come into the queue together ... */
#define WINDOW_KEY 64u                  /* ... when nothing is left in it with a table of 256 entries or fewer */
#define LEAST_LIMIT 1024u               /* entries up to which tables are always told apart by size */
#define MOST_SHARES_OF_MANY 64u         /* after so many, the members that are left get a share each */

typedef struct incidence {
  uint32_t factor;
  uint32_t next;
} incidence;

typedef struct variable_state {
  uint32_t head;                        /* of its incidences; some may be of factors that are gone */
  uint32_t factor_count;                /* that are not gone */
  uint32_t stamp;
  bool     is_taken;
} variable_state;

typedef struct factor_scope {
  uint64_t first;
  uint32_t count;
  bool     is_gone;
} factor_scope;

typedef struct hub {
  uint32_t variable;
  uint32_t factor_count;
} hub;

typedef struct order_maker {
  const tm_factor_graph *graph;
  tm_elimination_order  *order;
  tm_arena       *arena;
  tm_elimination_limits limits;
  variable_state *variables;
  tm_key_queue    queue;
  uint32_t        most_key;             /* what is beyond is not told apart: such a table is never made */
  uint32_t        stamp;
  uint32_t        taken_count;
  tm_growing      incidences, factors, scopes, steps, members;
  uint32_t       *bucket;               /* the factors of the variable at hand */
  uint32_t        bucket_count;
  uint32_t       *sequence;             /* variables in the graph's own order: what belongs together is near */
  uint32_t        next_in_sequence;     /* the first that is not in the queue yet */
  hub            *hubs;                 /* presence bits of many readers, most readers first */
  uint32_t        hub_count, next_hub;
} order_maker;

static uint64_t product(uint64_t a, uint64_t b) {
  uint64_t result;
  return tm_checked_mul(a, b, &result) ? result : UINT64_MAX;
}

/* Forgets incidences with factors that are gone. */
static void tidy(order_maker *m, variable_state *state) {
  incidence *nodes = m->incidences.items;
  const factor_scope *factors = m->factors.items;
  uint32_t *link = &state->head;
  while (*link != NONE) {
    if (factors[nodes[*link].factor].is_gone) *link = nodes[*link].next;
    else link = &nodes[*link].next;
  }
}

/* Adds to the key what a factor's variables that have no stamp yet add to the table. */
static uint32_t widen_key(order_maker *m, uint32_t key, const factor_scope *factor) {
  const uint32_t *scope = (const uint32_t *)m->scopes.items + factor->first;
  for (uint32_t i = 0; i < factor->count; i++) {
    if (m->variables[scope[i]].stamp == m->stamp) continue;
    m->variables[scope[i]].stamp = m->stamp;
    key += tm_key_queue_log(m->graph->state_counts[scope[i]]);
  }
  return key;
}

/* Tidies as far as it looks. */
static uint32_t key_of(order_maker *m, uint32_t v) {
  variable_state *state = &m->variables[v];
  if (state->factor_count > MOST_FACTORS_LOOKED_AT) return LATER_KEY;
  incidence *nodes = m->incidences.items;
  const factor_scope *factors = m->factors.items;
  uint32_t key = tm_key_queue_log(m->graph->state_counts[v]);
  state->stamp = ++m->stamp;
  for (uint32_t *link = &state->head; *link != NONE;) {
    const factor_scope *factor = &factors[nodes[*link].factor];
    if (factor->is_gone) {
      *link = nodes[*link].next;
      continue;
    }
    key = widen_key(m, key, factor);
    if (key > m->most_key) return LARGEST_KEY;
    link = &nodes[*link].next;
  }
  return key;
}

static bool add_incidence(order_maker *m, uint32_t factor, uint32_t v) {
  incidence *node = tm_growing_room(&m->incidences, m->arena, 1, sizeof *node);
  if (node == NULL || m->incidences.count == NONE) return false;
  *node = (incidence){ factor, m->variables[v].head };
  m->variables[v].head = (uint32_t)m->incidences.count++;
  m->variables[v].factor_count++;
  return true;
}

/* A factor over the variables from `first` to the end of the scopes. */
static bool add_factor(order_maker *m, uint64_t first) {
  factor_scope *factor = tm_growing_room(&m->factors, m->arena, 1, sizeof *factor);
  if (factor == NULL || m->factors.count == NONE) return false;
  *factor = (factor_scope){ first, (uint32_t)(m->scopes.count - first), false };
  const uint32_t number = (uint32_t)m->factors.count++;
  const uint32_t count = factor->count;
  for (uint32_t i = 0; i < count; i++) {
    if (!add_incidence(m, number, ((const uint32_t *)m->scopes.items)[first + i])) return false;
  }
  return true;
}

static void remove_factor(order_maker *m, uint32_t number) {
  factor_scope *factor = (factor_scope *)m->factors.items + number;
  factor->is_gone = true;
  for (uint32_t i = 0; i < factor->count; i++) m->variables[((const uint32_t *)m->scopes.items)[factor->first + i]].factor_count--;
}

static int compare_hubs(const void *a, const void *b) {
  const hub *x = a, *y = b;
  if (x->factor_count != y->factor_count) return x->factor_count < y->factor_count ? 1 : -1;
  return (x->variable > y->variable) - (x->variable < y->variable);
}

/* What most graphs take, so that little is copied in growing. */
static bool reserve(order_maker *m) {
  const uint64_t variables = m->graph->variable_count, factors = m->graph->factor_count;
  return tm_growing_room(&m->incidences, m->arena, 2 * factors + 3 * variables, sizeof(incidence)) != NULL &&
         tm_growing_room(&m->factors, m->arena, factors + variables, sizeof(factor_scope)) != NULL &&
         tm_growing_room(&m->scopes, m->arena, 2 * factors + 3 * variables, sizeof(uint32_t)) != NULL &&
         tm_growing_room(&m->steps, m->arena, variables, sizeof(tm_elimination_step)) != NULL &&
         tm_growing_room(&m->members, m->arena, factors + variables, sizeof(uint32_t)) != NULL;
}

/* Presence bits go behind the operation that makes their value, or that reads it first. */
static bool line_up(order_maker *m) {
  const tm_factor_graph *graph = m->graph;
  const uint32_t ops = graph->problem->op_count;
  m->sequence = tm_arena_alloc(m->arena, graph->variable_count * sizeof *m->sequence);
  uint32_t *places = tm_arena_calloc(m->arena, (uint64_t)ops + 1, sizeof *places);
  if (m->sequence == NULL || places == NULL) return false;
  for (uint32_t v = 0; v < graph->variable_count; v++) places[(v < ops ? v : graph->bit_ops[v - ops]) + 1]++;
  for (uint32_t op = 1; op < ops; op++) places[op] += places[op - 1];
  for (uint32_t v = 0; v < graph->variable_count; v++) m->sequence[places[v < ops ? v : graph->bit_ops[v - ops]]++] = v;
  return true;
}

static bool begin(order_maker *m) {
  const tm_factor_graph *graph = m->graph;
  if (!reserve(m) || !line_up(m)) return false;
  m->variables = tm_arena_calloc(m->arena, graph->variable_count, sizeof *m->variables);
  m->hubs = tm_arena_alloc(m->arena, graph->variable_count * sizeof *m->hubs);
  m->bucket = tm_arena_alloc(m->arena, ((uint64_t)graph->factor_count + graph->variable_count) * sizeof *m->bucket);
  if (!tm_key_queue_init(&m->queue, graph->variable_count, m->arena)) return false;
  if (m->variables == NULL || m->hubs == NULL || m->bucket == NULL) return false;
  for (uint32_t v = 0; v < graph->variable_count; v++) m->variables[v].head = NONE;
  for (uint32_t f = 0; f < graph->factor_count; f++) {
    const tm_factor *factor = &graph->factors[f];
    uint32_t *room = tm_growing_room(&m->scopes, m->arena, factor->variable_count, sizeof *room);
    if (room == NULL) return false;
    memcpy(room, factor->variables, factor->variable_count * sizeof *room);
    m->scopes.count += factor->variable_count;
    if (!add_factor(m, m->scopes.count - factor->variable_count)) return false;
  }
  for (uint32_t v = graph->variable_count; v-- > graph->problem->op_count;) {
    if (m->variables[v].factor_count >= LEAST_HUB_FACTORS) m->hubs[m->hub_count++] = (hub){ v, m->variables[v].factor_count };
  }
  qsort(m->hubs, m->hub_count, sizeof *m->hubs, compare_hubs);
  m->order->most_bit_readers = m->hub_count == 0 ? 0 : m->hubs[0].factor_count;
  return true;
}

/* Puts a factor's new variables behind the scopes and returns the table size that this makes of `entries`. */
static uint64_t join(order_maker *m, uint64_t entries, uint32_t number) {
  const factor_scope *factor = (const factor_scope *)m->factors.items + number;
  for (uint32_t i = 0; i < factor->count; i++) {
    const uint32_t u = ((const uint32_t *)m->scopes.items)[factor->first + i];
    if (m->variables[u].stamp == m->stamp) continue;
    m->variables[u].stamp = m->stamp;
    ((uint32_t *)m->scopes.items)[m->scopes.count++] = u;
    entries = product(entries, m->graph->state_counts[u]);
  }
  return entries;
}

/* Takes back what join added beyond `count`. */
static void part(order_maker *m, uint64_t count) {
  while (m->scopes.count > count) m->variables[((const uint32_t *)m->scopes.items)[--m->scopes.count]].stamp = 0;
}

static bool is_too_large(uint64_t entries, uint64_t limit, uint64_t dimensions) {
  return entries > limit || dimensions >= TM_ELIMINATION_MOST_DIMENSIONS;
}

static void add_member(order_maker *m, tm_elimination_step *step, uint32_t factor) {
  ((uint32_t *)m->members.items)[m->members.count++] = factor;
  step->member_count++;
}

static void count_step(order_maker *m, tm_elimination_step *step, uint64_t entries) {
  tm_elimination_order *order = m->order;
  step->scope_count = (uint32_t)(m->scopes.count - step->first_scope);
  step->entries = entries;
  step->message_entries = entries / m->graph->state_counts[step->variable];
  order->table_entries = tm_min_u64(order->table_entries + tm_min_u64(entries, UINT64_MAX / 4), UINT64_MAX / 4);
  order->largest_entries = tm_max_u64(order->largest_entries, entries);
  if (step->scope_count > order->width) order->width = step->scope_count;
  m->steps.count++;
}

/* How a variable is taken. */
typedef struct taking {
  uint32_t variable;
  bool     is_alone;                    /* a step for each factor */
  uint32_t shared_factor;               /* that is in all of them */
  uint64_t limit;                       /* entries of a table */
} taking;

/* Room for any union of the factors that a step may take. */
static bool make_scope_room(order_maker *m, const taking *how) {
  uint64_t most = 0;
  for (uint32_t i = how->is_alone && m->bucket_count != 0 ? m->bucket_count - 1 : 0; i < m->bucket_count; i++)
    most += ((const factor_scope *)m->factors.items)[m->bucket[i]].count;
  return tm_growing_room(&m->scopes, m->arena, most + TM_FACTOR_MOST_VARIABLES, sizeof(uint32_t)) != NULL &&
         tm_growing_room(&m->members, m->arena, (uint64_t)m->bucket_count + 1, sizeof(uint32_t)) != NULL;
}

/* Takes from the bucket as many factors as the table holds; the others stay.  Returns the entries that they make. */
static uint64_t take_members(order_maker *m, const taking *how, tm_elimination_step *step) {
  uint64_t entries = m->graph->state_counts[how->variable];
  uint32_t left = 0;
  if (how->is_alone && m->bucket_count != 0) {
    add_member(m, step, m->bucket[--m->bucket_count]);
    return join(m, entries, m->bucket[m->bucket_count]);
  }
  for (uint32_t i = 0; i < m->bucket_count; i++) {
    const uint64_t scope_count = m->scopes.count, joined = join(m, entries, m->bucket[i]);
    if (step->member_count != 0 && is_too_large(joined, how->limit, m->scopes.count - step->first_scope)) {
      part(m, scope_count);
      m->bucket[left++] = m->bucket[i];
      continue;
    }
    entries = joined;
    add_member(m, step, m->bucket[i]);
  }
  m->bucket_count = left;
  return entries;
}

static bool take_step(order_maker *m, const taking *how) {
  tm_elimination_step *step = tm_growing_room(&m->steps, m->arena, 1, sizeof *step);
  if (step == NULL || !make_scope_room(m, how)) return false;
  *step = (tm_elimination_step){ .variable = how->variable, .first_scope = m->scopes.count, .first_member = m->members.count,
                                 .shared_factor = how->shared_factor };
  m->variables[how->variable].stamp = ++m->stamp;
  uint64_t entries = take_members(m, how, step);
  if (how->shared_factor != NONE) {
    entries = join(m, entries, how->shared_factor);
    add_member(m, step, how->shared_factor);
  }
  count_step(m, step, entries);
  return true;
}

/* Messages and new keys, once all steps of the variable are taken. */
static bool close_steps(order_maker *m, uint64_t first_step) {
  const uint32_t share_count = (uint32_t)(m->steps.count - first_step);
  for (uint64_t s = first_step; s < m->steps.count; s++) {
    tm_elimination_step *step = (tm_elimination_step *)m->steps.items + s;
    step->share = (uint32_t)(s - first_step);
    step->share_count = share_count;
    factor_scope *message = tm_growing_room(&m->factors, m->arena, 1, sizeof *message);
    if (message == NULL || m->factors.count == NONE) return false;
    *message = (factor_scope){ step->first_scope, step->scope_count, false };
    const uint32_t number = (uint32_t)m->factors.count++;
    for (uint64_t i = step->first_scope; i < step->first_scope + step->scope_count; i++) {
      if (!add_incidence(m, number, ((const uint32_t *)m->scopes.items)[i])) return false;
    }
  }
  for (uint64_t s = first_step; s < m->steps.count; s++) {
    const tm_elimination_step *step = (const tm_elimination_step *)m->steps.items + s;
    for (uint32_t i = 0; i < step->scope_count; i++) {
      const uint32_t u = ((const uint32_t *)m->scopes.items)[step->first_scope + i];
      if (m->queue.items[u].key == TM_KEY_QUEUE_GONE) continue;
      const uint32_t key = key_of(m, u);
      if (key == m->queue.items[u].key) continue;
      tm_key_queue_remove(&m->queue, u);
      tm_key_queue_add(&m->queue, u, key);
    }
  }
  return true;
}

/* Fills the bucket.  The copy that a bit stands for, if its producer is still there, is taken out of it and returned. */
static uint32_t fill_bucket(order_maker *m, uint32_t v, bool is_split) {
  const incidence *nodes = m->incidences.items;
  uint32_t shared = NONE;
  tidy(m, &m->variables[v]);
  m->bucket_count = 0;
  for (uint32_t n = m->variables[v].head; n != NONE; n = nodes[n].next) m->bucket[m->bucket_count++] = nodes[n].factor;
  for (uint32_t i = 0; i < m->bucket_count; i++) remove_factor(m, m->bucket[i]);
  for (uint32_t i = 0; i < m->bucket_count && is_split && m->bucket_count > 1; i++) {
    const uint32_t factor = m->bucket[i];
    if (factor >= m->graph->factor_count || m->graph->factors[factor].kind != TM_FACTOR_PRESENT) continue;
    shared = factor;
    m->bucket[i] = m->bucket[--m->bucket_count];
    break;
  }
  return shared;
}

/* `is_split`: a step for each factor; one step, or as few as the limit allows, otherwise. */
static bool eliminate(order_maker *m, uint32_t v, bool is_split) {
  const uint64_t first_step = m->steps.count;
  if (m->queue.items[v].key != TM_KEY_QUEUE_GONE) tm_key_queue_remove(&m->queue, v);
  m->variables[v].is_taken = true;
  m->taken_count++;
  const uint64_t limit = m->limits.most_table_entries == 0 ? UINT64_MAX : m->limits.most_table_entries;
  taking how = { v, is_split, fill_bucket(m, v, is_split), limit };
  do {
    if (!take_step(m, &how)) return false;
    how.is_alone = is_split || m->steps.count - first_step >= MOST_SHARES_OF_MANY;
  } while (m->bucket_count != 0);
  if (m->steps.count - first_step > 1) m->order->is_exact = m->order->is_exact_but_bits = false;
  return close_steps(m, first_step);
}

/* The bit that most tables would be rid of. */
static uint32_t widest_hub(order_maker *m) {
  for (; m->next_hub < m->hub_count; m->next_hub++) {
    const uint32_t v = m->hubs[m->next_hub].variable;
    if (!m->variables[v].is_taken && m->variables[v].factor_count >= LEAST_HUB_FACTORS) return v;
  }
  return NONE;
}

/* Bits with more readers than the limit, before everything else. */
static bool split_bits(order_maker *m) {
  if (m->limits.most_bit_readers == 0) return true;
  for (uint32_t v = widest_hub(m); v != NONE && m->hubs[m->next_hub].factor_count > m->limits.most_bit_readers; v = widest_hub(m)) {
    if (!eliminate(m, v, true)) return false;
  }
  m->order->split_steps = (uint32_t)m->steps.count;
  m->order->is_exact_but_bits = true;
  return true;
}

/* The next variables come into the queue, the first of them first among equals. */
static void open_window(order_maker *m) {
  const uint32_t count = m->graph->variable_count, first = m->next_in_sequence;
  m->next_in_sequence = (uint32_t)tm_min_u64(count, (uint64_t)first + WINDOW_VARIABLES);
  for (uint32_t i = m->next_in_sequence; i-- > first;) {
    const uint32_t v = m->sequence[i];
    if (!m->variables[v].is_taken) tm_key_queue_add(&m->queue, v, key_of(m, v));
  }
}

/* The variable to take next.  Small tables are taken as they come, so that what is looked at lies together; large ones when
   all others can be compared with them. */
static uint32_t next_variable(order_maker *m) {
  for (;;) {
    const uint32_t v = tm_key_queue_first(&m->queue);
    if (m->next_in_sequence == m->graph->variable_count) return v;
    if (v != NONE && m->queue.least_key <= WINDOW_KEY) return v;
    open_window(m);
  }
}

/* Tables grow while variables are taken: if those that are left took as much as the least of them does, and that is far over the
   budget, there is no need to see it. */
static bool is_hopeless(const order_maker *m) {
  const uint32_t key = m->queue.least_key;
  if (m->limits.most_table_entries != 0 || key >= LARGEST_KEY || m->order->table_entries > m->limits.most_entries) return false;
  const uint64_t left = m->graph->variable_count - m->taken_count;
  return product(left / HOPELESS_TIMES, UINT64_C(1) << tm_min_u64(key / 8, 63)) > m->limits.most_entries - m->order->table_entries;
}

static bool run(order_maker *m) {
  if (!split_bits(m)) return false;
  const uint32_t most = (uint32_t)tm_min_u64(m->limits.most_table_entries, UINT32_MAX);
  const uint32_t limit_key = most == 0 ? TM_KEY_QUEUE_KEYS : tm_key_queue_log(most);
  for (uint32_t v = next_variable(m); v != NONE; v = next_variable(m)) {
    const uint32_t wide = m->queue.least_key > limit_key ? widest_hub(m) : NONE;
    if (!eliminate(m, wide == NONE ? v : wide, wide != NONE)) return false;
    m->order->left_count = m->graph->variable_count - m->taken_count;
    if (m->order->table_entries > m->limits.most_entries || is_hopeless(m)) return true;
  }
  m->order->is_complete = m->order->table_entries <= m->limits.most_entries;
  return true;
}

static void sort_scope(uint32_t *scope, uint32_t count, const uint32_t *positions) {
  for (uint32_t i = 1; i < count; i++) {
    const uint32_t v = scope[i];
    uint32_t at = i;
    for (; at > 0 && positions[v] < positions[scope[at - 1]]; at--) scope[at] = scope[at - 1];
    scope[at] = v;
  }
}

static bool finish(order_maker *m) {
  tm_elimination_order *order = m->order;
  uint32_t *positions = tm_arena_alloc(m->arena, m->graph->variable_count * sizeof *positions);
  order->first_scope = tm_arena_alloc(m->arena, m->graph->factor_count * sizeof *order->first_scope);
  if (positions == NULL || order->first_scope == NULL) return false;
  order->steps = m->steps.items;
  order->step_count = (uint32_t)m->steps.count;
  order->scopes = m->scopes.items;
  order->members = m->members.items;
  for (uint32_t s = 0; s < order->step_count; s++) positions[order->steps[s].variable] = s;
  const factor_scope *factors = m->factors.items;
  for (uint32_t f = 0; f < m->factors.count; f++) sort_scope(order->scopes + factors[f].first, factors[f].count, positions);
  for (uint32_t f = 0; f < m->graph->factor_count; f++) order->first_scope[f] = factors[f].first;
  return true;
}

tm_status tm_elimination_order_init(tm_elimination_order *order, const tm_factor_graph *graph,
                                    const tm_elimination_limits *limits, tm_arena *arena, tm_error *error) {
  *order = (tm_elimination_order){ .is_exact = true, .is_exact_but_bits = true };
  order_maker *maker = tm_arena_calloc(arena, 1, sizeof *maker);
  if (maker == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an order of %u variables", graph->variable_count);
  maker->graph = graph;
  maker->order = order;
  maker->arena = arena;
  maker->limits = *limits;
  const uint64_t largest_table = limits->most_table_entries == 0 ? limits->most_entries : limits->most_table_entries;
  maker->most_key = tm_key_queue_log((uint32_t)tm_min_u64(tm_max_u64(largest_table, LEAST_LIMIT), UINT32_MAX));
  if (!begin(maker) || !run(maker) || (order->is_complete && !finish(maker)))
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an order of %u variables", graph->variable_count);
  return TM_OK;
}
