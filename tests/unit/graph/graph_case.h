/* SPDX-License-Identifier: Apache-2.0 */
/* graph_case.h - for tests of graphs: short ways to build one, and to say which words an error must have. */
#ifndef TM_TESTS_GRAPH_CASE_H
#define TM_TESTS_GRAPH_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/shape.h"

#define DIMS(...) (const uint64_t[]){ __VA_ARGS__ }
#define VALUES(...) (const uint32_t[]){ __VA_ARGS__ }

typedef struct graph_case {
  tm_memory memory;
  tm_graph  graph;
  tm_error  error;
} graph_case;

static inline void case_begin(graph_case *c) {
  memset(c, 0, sizeof *c);
  tm_memory_init(&c->memory, 0);
  tm_graph_init(&c->graph, &c->memory);
  c->error.struct_size = sizeof c->error;
}

static inline void case_end(graph_case *c) {
  tm_graph_deinit(&c->graph);
  assert_int_equal(atomic_load(&c->memory.used_bytes), 0);
}

static inline tm_operand dense(uint32_t format, uint32_t rank, const uint64_t *dims) {
  tm_operand operand;
  assert_int_equal(tm_operand_contiguous(format, rank, dims, &operand, NULL), TM_OK);
  return operand;
}

static inline tm_operand f32(uint32_t rank, const uint64_t *dims) { return dense(TM_FORMAT_F32, rank, dims); }

static inline uint32_t add_input(graph_case *c, const char *name, tm_operand operand) {
  uint32_t value = TM_GRAPH_NONE;
  assert_int_equal(tm_graph_add_input(&c->graph, name, &operand, &value, &c->error), TM_OK);
  return value;
}

static inline uint32_t add_constant(graph_case *c, const char *name, tm_operand operand) {
  uint32_t value = TM_GRAPH_NONE;
  assert_int_equal(tm_graph_add_constant(&c->graph, name, &operand, &value, &c->error), TM_OK);
  return value;
}

static inline uint32_t add_state(graph_case *c, const char *name, tm_operand operand) {
  uint32_t value = TM_GRAPH_NONE;
  assert_int_equal(tm_graph_add_state(&c->graph, name, &operand, &value, &c->error), TM_OK);
  return value;
}

static inline uint32_t add_view(graph_case *c, uint32_t of, tm_operand operand, uint64_t offset_bytes) {
  uint32_t value = TM_GRAPH_NONE;
  assert_int_equal(tm_graph_add_view(&c->graph, of, &operand, offset_bytes, &value, &c->error), TM_OK);
  return value;
}

static inline tm_status try_node(graph_case *c, const char *name, uint32_t op, const void *attributes, uint32_t attribute_bytes,
                                 const uint32_t *inputs, uint32_t input_count, uint32_t *out_value) {
  const tm_node_request request = {
    .name = name,
    .op = op,
    .attributes = attributes,
    .attribute_bytes = attribute_bytes,
    .inputs = inputs,
    .input_count = input_count,
    .output_count = 1,
  };
  return tm_graph_add_node(&c->graph, &request, out_value, &c->error);
}

static inline uint32_t add_unary(graph_case *c, uint32_t op, uint32_t x) {
  uint32_t value = TM_GRAPH_NONE;
  const tm_status status = try_node(c, NULL, op, NULL, 0, &x, 1, &value);
  if (status != TM_OK) fail_msg("%s", c->error.text);
  return value;
}

static inline uint32_t add_binary(graph_case *c, uint32_t op, uint32_t a, uint32_t b) {
  uint32_t value = TM_GRAPH_NONE;
  const tm_status status = try_node(c, NULL, op, NULL, 0, VALUES(a, b), 2, &value);
  if (status != TM_OK) fail_msg("%s", c->error.text);
  return value;
}

static inline void add_output(graph_case *c, const char *name, uint32_t value) {
  assert_int_equal(tm_graph_add_output(&c->graph, name, value, &c->error), TM_OK);
}

static inline void add_carry(graph_case *c, uint32_t state, uint32_t value) {
  assert_int_equal(tm_graph_add_carry(&c->graph, state, value, &c->error), TM_OK);
}

static inline void says(const graph_case *c, tm_status found, tm_status expected, const char *words) {
  if (found != expected) fail_msg("status %d, expected %d: %s", (int)found, (int)expected, c->error.text);
  if (strstr(c->error.text, words) == NULL) fail_msg("'%s' does not say '%s'", c->error.text, words);
}

#endif
