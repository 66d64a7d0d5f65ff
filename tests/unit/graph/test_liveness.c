/* SPDX-License-Identifier: Apache-2.0 */
/* Who needs which memory until when: small graphs by hand, and random ones replayed in the memory that was given to them. */
#include "graph/liveness.h"

#include <time.h>

#include "unit/graph/graph_case.h"

static tm_liveness live(graph_case *c, const uint64_t *allowed) {
  tm_liveness liveness;
  assert_int_equal(tm_liveness_init(&liveness, &c->graph, NULL, allowed, &c->error), TM_OK);
  return liveness;
}

static void uses_are_counted_through_views(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  const uint32_t x = add_input(&c, "x", four);
  const uint32_t unused = add_input(&c, "unused", four);
  const uint32_t a = add_unary(&c, TM_OP_EXP, x);               /* node 0 */
  const uint32_t view = add_view(&c, a, f32(1, DIMS(2)), 8);
  const uint32_t b = add_binary(&c, TM_OP_ADD, a, a);           /* node 1 */
  const uint32_t d = add_unary(&c, TM_OP_NEG, view);            /* node 2 */
  add_output(&c, "b", b);
  tm_liveness all = live(&c, NULL);
  assert_int_equal(all.values[x].first_use, 0);
  assert_int_equal(all.values[x].last_use, 0);
  assert_int_equal(all.values[x].made, TM_GRAPH_NONE);
  assert_int_equal(all.values[unused].last_use, TM_GRAPH_NONE);
  assert_int_equal(all.values[unused].memory_last, TM_GRAPH_NONE);
  assert_int_equal(all.values[a].made, 0);
  assert_int_equal(all.values[a].first_use, 1);
  assert_int_equal(all.values[a].last_use, 2);
  assert_int_equal(all.values[a].use_count, 2);
  assert_int_equal(all.values[view].root, a);
  assert_int_equal(all.values[view].offset_bytes, 8);
  assert_int_equal(all.values[view].first_use, 2);
  assert_int_equal(all.values[b].outlives, 1);
  assert_int_equal(all.values[b].root, b);                      /* a is read after it */
  assert_int_equal(all.values[b].memory_last, 3);
  assert_int_equal(all.values[a].memory_last, 2);
  assert_int_equal(all.values[d].root, a);                      /* where the view was, since nobody needs a any more */
  assert_int_equal(all.values[d].offset_bytes, 8);
  tm_liveness_deinit(&all);
  case_end(&c);
}

static void chains_run_in_place(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  const uint32_t x = add_input(&c, "x", four), w = add_constant(&c, "w", four);
  const uint32_t a = add_binary(&c, TM_OP_MUL, x, w);   /* inputs and constants are never overwritten */
  const uint32_t b = add_unary(&c, TM_OP_EXP, a);
  const uint32_t d = add_binary(&c, TM_OP_ADD, x, b);   /* the second input's place */
  add_output(&c, "d", d);
  tm_liveness all = live(&c, NULL);
  assert_int_equal(all.values[a].root, a);
  assert_int_equal(all.values[b].in_place_of, a);
  assert_int_equal(all.values[d].in_place_of, b);
  assert_int_equal(all.values[d].root, a);
  assert_int_equal(all.values[a].memory_last, 3);
  tm_liveness_deinit(&all);
  const uint64_t allowed[] = { UINT64_MAX, UINT64_MAX, 0x1 };   /* node 2: only in its first input's place */
  all = live(&c, allowed);
  assert_int_equal(all.values[b].root, a);
  assert_int_equal(all.values[d].root, d);
  tm_liveness_deinit(&all);
  case_end(&c);
}

static void broadcast_operands_are_not_overwritten(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t x = add_input(&c, "x", f32(2, DIMS(4, 4)));
  const uint32_t row = add_unary(&c, TM_OP_NEG, add_input(&c, "row", f32(1, DIMS(4))));
  const uint32_t sum = add_binary(&c, TM_OP_ADD, row, x);
  tm_liveness all = live(&c, NULL);
  assert_int_equal(all.values[sum].root, sum);
  assert_false(tm_graph_may_alias(&c.graph, c.graph.values[sum].node, 0, 0));
  assert_true(tm_graph_may_alias(&c.graph, c.graph.values[sum].node, 0, 1));
  tm_liveness_deinit(&all);
  case_end(&c);
}

/* An operation reads an element before it writes it, in one place; not where another operand lies across it. */
static void operands_that_lie_across_are_not_overwritten(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  const uint32_t base = add_unary(&c, TM_OP_NEG, add_input(&c, "x", f32(1, DIMS(8))));
  const uint32_t first = add_view(&c, base, four, 0), second = add_view(&c, base, four, 4);
  const uint32_t sum = add_binary(&c, TM_OP_ADD, first, second);
  const uint32_t twice = add_binary(&c, TM_OP_MUL, sum, sum);
  tm_liveness all = live(&c, NULL);
  assert_int_equal(all.values[sum].root, sum);
  assert_int_equal(all.values[twice].root, sum);
  tm_liveness_deinit(&all);
  const uint64_t allowed[] = { 0, 0, 0x1 };     /* not in the second operand's place, which is the same */
  all = live(&c, allowed);
  assert_int_equal(all.values[twice].root, twice);
  tm_liveness_deinit(&all);
  case_end(&c);
}

static void states_are_overwritten_only_on_their_way(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  const uint32_t x = add_input(&c, "x", four);
  const uint32_t s = add_state(&c, "s", four), kept = add_state(&c, "kept", four), read = add_state(&c, "read", four);
  const uint32_t s1 = add_binary(&c, TM_OP_ADD, x, s);
  const uint32_t s2 = add_unary(&c, TM_OP_TANH, s1);
  const uint32_t k1 = add_unary(&c, TM_OP_NEG, kept);           /* leads nowhere: kept stays */
  const uint32_t r1 = add_unary(&c, TM_OP_NEG, read);
  const uint32_t r2 = add_binary(&c, TM_OP_SUB, r1, read);      /* the old content is read after r1 */
  add_carry(&c, s, s2);
  add_carry(&c, read, r2);
  add_output(&c, "k1", k1);
  tm_liveness all = live(&c, NULL);
  assert_int_equal(all.values[s1].root, s);
  assert_int_equal(all.values[s2].root, s);
  assert_int_equal(all.values[s].memory_last, c.graph.node_count);
  assert_int_equal(all.values[k1].root, k1);
  assert_int_equal(all.values[kept].outlives, 1);
  assert_int_equal(all.values[r1].root, r1);
  assert_int_equal(all.values[r2].root, read);                  /* it may go back there, in its second input's place */
  tm_liveness_deinit(&all);
  case_end(&c);
}

/* One's next content is the other's old one. */
static void swapped_states_stay_apart(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t a = add_state(&c, "a", f32(1, DIMS(4))), b = add_state(&c, "b", f32(1, DIMS(4)));
  const uint32_t a1 = add_unary(&c, TM_OP_NEG, a);
  add_carry(&c, a, b);
  add_carry(&c, b, a1);
  tm_liveness all = live(&c, NULL);
  assert_int_equal(all.values[a1].root, a1);
  assert_int_equal(all.values[b].outlives, 1);
  tm_liveness_deinit(&all);
  case_end(&c);
}

/* Many states become one value, at the end of a long way that leads to none of them: two thousand million steps, if each were
   followed to its end. */
static void shared_ways_take_linear_time(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  enum { STATES = 20000, LENGTH = 100000 };
  uint32_t value = add_unary(&c, TM_OP_NEG, add_input(&c, "x", four));
  for (uint32_t i = 0; i < LENGTH; i++) value = add_unary(&c, TM_OP_NEG, value);
  for (uint32_t i = 0; i < STATES; i++) {
    char name[16];
    snprintf(name, sizeof name, "s%u", i);
    add_carry(&c, add_state(&c, name, four), value);
  }
  const clock_t begin = clock();
  tm_liveness all = live(&c, NULL);
  const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  print_message("%.3f s of processor time\n", seconds);
  assert_true(seconds < 30);
  assert_int_equal(all.values[value].outlives, 1);
  tm_liveness_deinit(&all);
  case_end(&c);
}

/* ---- random graphs, replayed ---- */

/* What lies in one element: which value's which element it is.  A view's elements are its base's. */
typedef struct replay {
  const tm_graph    *graph;
  const tm_liveness *all;
  uint64_t          *cells;     /* [root][element]: of 4 bytes each */
} replay;

enum { ELEMENTS = 8, MOST_VALUES = 64 };

static uint64_t tag(uint32_t value, uint64_t element) { return (uint64_t)value * ELEMENTS + element + 1; }

static void write_value(const replay *r, uint32_t value) {
  const tm_value_life *life = &r->all->values[value];
  for (uint64_t e = 0; e < r->graph->values[value].operand.element_count; e++)
    r->cells[life->root * ELEMENTS + life->offset_bytes / 4 + e] = tag(value, e);
}

static void check_value(const replay *r, uint32_t value) {
  const tm_value *one = &r->graph->values[value];
  const tm_value_life *life = &r->all->values[value];
  for (uint64_t e = 0; e < one->operand.element_count; e++)
    assert_int_equal(r->cells[life->root * ELEMENTS + life->offset_bytes / 4 + e], tag(one->base, one->offset_bytes / 4 + e));
}

static void replay_graph(const tm_graph *graph, const tm_liveness *all) {
  uint64_t cells[MOST_VALUES * ELEMENTS] = { 0 };
  const replay r = { .graph = graph, .all = all, .cells = cells };
  for (uint32_t v = 0; v < graph->value_count; v++) {
    assert_int_equal(all->values[all->values[v].root].root, all->values[v].root);
    if (graph->values[v].kind != TM_GRAPH_RESULT && graph->values[v].kind != TM_GRAPH_VIEW) write_value(&r, v);
  }
  for (uint32_t n = 0; n < graph->node_count; n++) {
    const tm_node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->input_count; i++) {
      check_value(&r, node->inputs[i]);
      assert_true(all->values[all->values[node->inputs[i]].root].memory_last >= n);
    }
    write_value(&r, node->outputs[0]);
    assert_true(all->values[all->values[node->outputs[0]].root].memory_last >= n);
  }
  for (uint32_t i = 0; i < graph->output_count; i++) check_value(&r, graph->outputs[i].value);
  for (uint64_t i = 0; i < graph->states.count; i++) {
    const uint32_t state = graph->states.values[i];
    check_value(&r, graph->values[state].carry == TM_GRAPH_NONE ? state : graph->values[state].carry);
  }
  for (uint64_t i = 0; i < graph->inputs.count; i++) check_value(&r, graph->inputs.values[i]);
}

static uint32_t next_random(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 33);
}

static void add_random(graph_case *c, uint64_t *seed, uint32_t number) {
  const uint32_t a = next_random(seed) % c->graph.value_count, b = next_random(seed) % c->graph.value_count;
  const bool match = c->graph.values[a].operand.element_count == c->graph.values[b].operand.element_count;
  const uint64_t half = c->graph.values[a].operand.element_count / 2;
  char name[16];
  snprintf(name, sizeof name, "o%u", number);
  switch (next_random(seed) % 8) {
    case 0: if (half != 0) add_view(c, a, f32(1, &half), next_random(seed) % 2 * half * 4); break;
    case 1: add_output(c, name, a); break;
    case 2:
    case 3: if (match) add_binary(c, TM_OP_ADD, a, b); break;
    default: add_unary(c, TM_OP_NEG, next_random(seed) % 3 == 0 ? a : c->graph.value_count - 1); break;
  }
}

static void random_graphs_replay_in_their_memory(void **state) {
  (void)state;
  uint32_t in_place = 0, in_states = 0;
  const uint64_t rounds = getenv("TM_NIGHTLY") != NULL ? 200000 : 5000;
  for (uint64_t round = 0; round < rounds; round++) {
    graph_case c;
    uint64_t seed = round;
    const uint64_t elements = ELEMENTS;
    case_begin(&c);
    add_input(&c, "x", f32(1, &elements));
    add_constant(&c, "w", f32(1, &elements));
    const uint32_t states[] = { add_state(&c, "s", f32(1, &elements)), add_state(&c, "t", f32(1, &elements)) };
    const uint32_t steps = 2 + next_random(&seed) % 40;
    for (uint32_t i = 0; i < steps; i++) add_random(&c, &seed, i);
    for (uint32_t i = 0; i < 2; i++) {
      const uint32_t value = next_random(&seed) % c.graph.value_count;
      if (c.graph.values[value].operand.element_count == ELEMENTS) add_carry(&c, states[i], value);
    }
    tm_liveness all = live(&c, NULL);
    for (uint32_t v = 0; v < c.graph.value_count; v++) {
      in_place += all.values[v].in_place_of != TM_GRAPH_NONE;
      in_states += all.values[v].in_place_of != TM_GRAPH_NONE && c.graph.values[all.values[v].root].kind == TM_GRAPH_STATE;
    }
    replay_graph(&c.graph, &all);
    tm_liveness_deinit(&all);
    case_end(&c);
  }
  print_message("%u results in place, %u of them in a state\n", in_place, in_states);
  assert_true(in_place > rounds);
  assert_true(in_states > rounds / 50);
}

static void nothing_is_fine(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  tm_liveness all = live(&c, NULL);
  tm_liveness_deinit(&all);
  case_end(&c);
}

static void no_memory_is_an_error(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  add_input(&c, "x", f32(1, DIMS(4)));
  tm_liveness all;
  for (uint64_t room = 1; room < 120; room += 30) {
    c.memory.limit_bytes = atomic_load(&c.memory.used_bytes) + room;
    const tm_status status = tm_liveness_init(&all, &c.graph, NULL, NULL, &c.error);
    if (status == TM_OK) tm_liveness_deinit(&all);
    else says(&c, status, TM_ERROR_NO_MEMORY, "no memory for the lives of 1 values");
  }
  c.memory.limit_bytes = atomic_load(&c.memory.used_bytes) + 1;
  assert_int_equal(tm_liveness_init(&all, &c.graph, NULL, NULL, &c.error), TM_ERROR_NO_MEMORY);
  case_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(uses_are_counted_through_views),
    cmocka_unit_test(chains_run_in_place),
    cmocka_unit_test(broadcast_operands_are_not_overwritten),
    cmocka_unit_test(operands_that_lie_across_are_not_overwritten),
    cmocka_unit_test(states_are_overwritten_only_on_their_way),
    cmocka_unit_test(swapped_states_stay_apart),
    cmocka_unit_test(shared_ways_take_linear_time),
    cmocka_unit_test(random_graphs_replay_in_their_memory),
    cmocka_unit_test(nothing_is_fine),
    cmocka_unit_test(no_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
