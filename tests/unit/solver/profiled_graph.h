/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiled_graph.h - the graphs of dnn-partitioning (JSON: nodes with the time on a slow and on a fast kind of device,
 * edges with the time that moving the value takes) as placement problems.  Device 0 is of the slow kind, each in a memory
 * of its own; the others are of the fast kind, each by a factor of its own for every class of nodes, and without support
 * for some; a value goes from one to another by way of device 0.
 */
#ifndef PROFILED_GRAPH_H
#define PROFILED_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_pull.h"
#include "solver/problem.h"

#define PROFILED_MOST_DEVICES 8u

static const char *const profiled_files[] = {
  "LayerGraphs/bert24_inference.json",      "LayerGraphs/gnmt_inference.json",
  "LayerGraphs/resnet50_inference.json",    "LayerGraphs/resnet50_training.json",
  "OperatorGraphs/bert_l-3_inference.json", "OperatorGraphs/bert_l-12_inference.json",
  "OperatorGraphs/resnet50_inference.json",
};
#define PROFILED_FILES (sizeof profiled_files / sizeof profiled_files[0])

typedef struct profiled_node {
  double   id, slow_ms, fast_ms, size, color;
  uint32_t place;               /* in an order that can run */
  uint32_t waits_for;           /* edges into it that are not placed yet */
  uint32_t value;
} profiled_node;

typedef struct profiled_edge {
  double   source, dest, cost_ms, size;
  uint32_t from, to;            /* nodes */
} profiled_edge;

typedef struct profiled_graph {
  profiled_node *nodes;
  profiled_edge *edges;
  uint32_t       node_count, edge_count;
} profiled_graph;

typedef struct profiled_field {
  const char *name;
  size_t      offset;
} profiled_field;

static const profiled_field profiled_node_fields[] = {
  { "id", offsetof(profiled_node, id) },     { "cpuLatency", offsetof(profiled_node, slow_ms) },
  { "size", offsetof(profiled_node, size) }, { "fpgaLatency", offsetof(profiled_node, fast_ms) },
  { "colorClass", offsetof(profiled_node, color) },
};
static const profiled_field profiled_edge_fields[] = {
  { "sourceId", offsetof(profiled_edge, source) }, { "destId", offsetof(profiled_edge, dest) },
  { "cost", offsetof(profiled_edge, cost_ms) },    { "size", offsetof(profiled_edge, size) },
};

static inline double profiled_number(const tm_json_token *token) {
  char text[64] = { 0 };
  memcpy(text, token->text, token->length < sizeof text ? token->length : sizeof text - 1);
  return strtod(text, NULL);
}

/* Reads one object whose beginning is past. */
static inline bool profiled_row(tm_json_pull *json, const profiled_field *fields, size_t count, void *row) {
  tm_json_token key, value;
  while (tm_json_next(json, &key) == TM_JSON_KEY) {
    tm_json_next(json, &value);
    for (size_t i = 0; i < count && value.kind == TM_JSON_NUMBER; i++) {
      if (tm_json_is(&key, fields[i].name)) *(double *)(void *)((char *)row + fields[i].offset) = profiled_number(&value);
    }
    if (!tm_json_skip(json, &value)) return false;
  }
  return key.kind == TM_JSON_OBJECT_END;
}

/* An array of objects; NULL if it is not one. */
static inline void *profiled_rows(tm_json_pull *json, const profiled_field *fields, size_t field_count,
                                  size_t row_bytes, uint32_t *out_count) {
  tm_json_token token;
  char *rows = NULL;
  *out_count = 0;
  if (tm_json_next(json, &token) != TM_JSON_ARRAY_BEGIN) return NULL;
  while (tm_json_next(json, &token) == TM_JSON_OBJECT_BEGIN) {
    if ((*out_count & (*out_count + 1)) == 0) rows = realloc(rows, (2 * (size_t)*out_count + 2) * row_bytes);
    memset(rows + *out_count * row_bytes, 0, row_bytes);
    if (!profiled_row(json, fields, field_count, rows + (*out_count)++ * row_bytes)) return rows;
  }
  return rows;
}

static inline bool profiled_parse(profiled_graph *graph, const char *text, uint64_t length) {
  tm_json_pull json;
  tm_json_token token;
  memset(graph, 0, sizeof *graph);
  tm_json_init(&json, text, length);
  if (tm_json_next(&json, &token) != TM_JSON_OBJECT_BEGIN) return false;
  while (tm_json_next(&json, &token) == TM_JSON_KEY) {
    if (tm_json_is(&token, "nodes")) {
      graph->nodes = profiled_rows(&json, profiled_node_fields, 5, sizeof *graph->nodes, &graph->node_count);
    } else if (tm_json_is(&token, "edges")) {
      graph->edges = profiled_rows(&json, profiled_edge_fields, 4, sizeof *graph->edges, &graph->edge_count);
    } else {
      tm_json_next(&json, &token);
      tm_json_skip(&json, &token);
    }
  }
  return token.kind == TM_JSON_OBJECT_END && graph->node_count != 0 && graph->edge_count != 0;
}

static inline uint32_t profiled_find(const profiled_graph *graph, double id) {
  for (uint32_t i = 0; i < graph->node_count; i++) {
    if (!(graph->nodes[i].id < id) && !(graph->nodes[i].id > id)) return i;
  }
  return UINT32_MAX;
}

/* Gives every node its place; false if that cannot be. */
static inline bool profiled_sort(profiled_graph *graph) {
  for (uint32_t e = 0; e < graph->edge_count; e++) {
    profiled_edge *edge = &graph->edges[e];
    edge->from = profiled_find(graph, edge->source);
    edge->to = profiled_find(graph, edge->dest);
    if (edge->from == UINT32_MAX || edge->to == UINT32_MAX) return false;
    graph->nodes[edge->to].waits_for++;
  }
  for (uint32_t i = 0; i < graph->node_count; i++) graph->nodes[i].place = UINT32_MAX;
  for (uint32_t place = 0; place < graph->node_count; place++) {
    uint32_t next = 0;
    while (next < graph->node_count && (graph->nodes[next].place != UINT32_MAX || graph->nodes[next].waits_for != 0)) next++;
    if (next == graph->node_count) return false;
    graph->nodes[next].place = place;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
      if (graph->edges[e].from == next) graph->nodes[graph->edges[e].to].waits_for--;
    }
  }
  return true;
}

/* false: there is no such file, or it is not what it should be (then the path is printed). */
static inline bool profiled_open(profiled_graph *graph, const char *folder, const char *name) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/task-graphs/dnn-partitioning/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  (void)fseek(file, 0, SEEK_END);
  const size_t length = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(length);
  const bool is_read = text != NULL && fread(text, 1, length, file) == length && profiled_parse(graph, text, length) &&
                       profiled_sort(graph);
  (void)fclose(file);
  free(text);
  if (!is_read) printf("%s is not the graph that it should be\n", path);
  return is_read;
}

static inline void profiled_close(profiled_graph *graph) {
  free(graph->nodes);
  free(graph->edges);
}

/* ---- As a problem.  Everything is allocated at once and freed by profiled_free. ---- */

typedef struct profiled_problem {
  tm_solver_problem problem;
  tm_solver_op     *ops;
  tm_solver_label  *labels;
  tm_solver_value  *values;
  uint32_t         *inputs;
  uint64_t         *copy_ns;
} profiled_problem;

static inline uint32_t profiled_mix(uint32_t a, uint32_t b) {
  uint64_t x = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  return (uint32_t)(x >> 33);
}

/* The first fast device is as measured and supports all; the others take 1/2 to 2 times as long and support 6 classes in 7. */
static inline uint64_t profiled_cost(const profiled_node *node, uint32_t device) {
  if (device == 0) return (uint64_t)(node->slow_ms * 1e6);
  const uint32_t drawn = device == 1 ? 0 : profiled_mix((uint32_t)node->color, device);
  if (device != 1 && drawn % 7 == 0) return TM_SOLVER_NEVER;
  const double factor = device == 1 ? 1 : 0.5 + (double)(drawn % 1500) / 1000;
  return (uint64_t)(node->fast_ms * 1e6 * factor);
}

static inline void profiled_fill_op(profiled_problem *p, profiled_graph *graph, uint32_t node, uint32_t devices) {
  const uint32_t op = graph->nodes[node].place;
  p->ops[op] = (tm_solver_op){ op * devices, devices, p->problem.input_count, 0 };
  for (uint32_t d = 0; d < devices; d++)
    p->labels[op * devices + d] = (tm_solver_label){ profiled_cost(&graph->nodes[node], d), d, d, d, d, 0 };
  for (uint32_t e = 0; e < graph->edge_count; e++) {
    if (graph->edges[e].to != node) continue;
    const uint32_t value = graph->nodes[graph->edges[e].from].value;
    bool is_there = false;
    for (uint32_t i = 0; i < p->ops[op].input_count; i++) is_there = is_there || p->inputs[p->ops[op].first_input + i] == value;
    if (is_there) continue;
    p->inputs[p->problem.input_count++] = value;
    p->ops[op].input_count++;
  }
}

static inline void profiled_fill_value(profiled_problem *p, profiled_graph *graph, const profiled_edge *edge,
                                       double copy_factor, uint32_t devices) {
  const uint32_t value = p->problem.value_count++;
  const uint64_t copy = (uint64_t)(edge->cost_ms * 1e6 * copy_factor);
  graph->nodes[edge->from].value = value;
  p->values[value] =
      (tm_solver_value){(uint64_t)edge->size, graph->nodes[edge->from].place, TM_SOLVER_NONE, TM_SOLVER_NONE, value};
  for (uint32_t from = 0; from < devices; from++) {
    for (uint32_t to = 0; to < devices; to++)
      p->copy_ns[(value * devices + from) * devices + to] = from == to ? 0 : from == 0 || to == 0 ? copy : 2 * copy;
  }
}

/* false: no memory. */
static inline bool profiled_build(profiled_problem *p, profiled_graph *graph, uint32_t devices, double copy_factor) {
  memset(p, 0, sizeof *p);
  p->ops = calloc(graph->node_count, sizeof *p->ops);
  p->labels = calloc((size_t)graph->node_count * devices, sizeof *p->labels);
  p->values = calloc(graph->node_count, sizeof *p->values);
  p->inputs = calloc(graph->edge_count, sizeof *p->inputs);
  p->copy_ns = calloc((size_t)graph->node_count * devices * devices, sizeof *p->copy_ns);
  if (p->ops == NULL || p->labels == NULL || p->values == NULL || p->inputs == NULL || p->copy_ns == NULL) return false;
  for (uint32_t i = 0; i < graph->node_count; i++) graph->nodes[i].value = UINT32_MAX;
  for (uint32_t e = 0; e < graph->edge_count; e++) {
    if (graph->nodes[graph->edges[e].from].value == UINT32_MAX)
      profiled_fill_value(p, graph, &graph->edges[e], copy_factor, devices);
  }
  for (uint32_t i = 0; i < graph->node_count; i++) profiled_fill_op(p, graph, i, devices);
  p->problem.ops = p->ops;
  p->problem.labels = p->labels;
  p->problem.values = p->values;
  p->problem.inputs = p->inputs;
  p->problem.copy_ns = p->copy_ns;
  p->problem.op_count = graph->node_count;
  p->problem.label_count = graph->node_count * devices;
  p->problem.memory_count = devices;
  p->problem.resource_count = devices;
  p->problem.size_class_count = p->problem.value_count;
  return true;
}

static inline void profiled_free(profiled_problem *p) {
  free(p->ops);
  free(p->labels);
  free(p->values);
  free(p->inputs);
  free(p->copy_ns);
}

#endif
