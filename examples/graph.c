/* SPDX-License-Identifier: Apache-2.0 */
/* A perceptron of two layers as a graph, y = relu(x * w1 + b1) * w2 + b2: built, printed for people or for Graphviz, planned and
   run.
   Usage: graph [dot | json]    then only that is printed */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tensormorph/tensormorph.h>

enum { ROWS = 4, INNER = 64, HIDDEN = 128, OUTER = 10 };

typedef struct weights {
  tm_tensor *w1;
  tm_tensor *b1;
  tm_tensor *w2;
  tm_tensor *b2;
} weights;

static tm_status create(tm_context *context, weights *all, tm_error *error) {
  const uint64_t w1[] = { INNER, HIDDEN }, b1[] = { HIDDEN }, w2[] = { HIDDEN, OUTER }, b2[] = { OUTER };
  tm_status status = tm_tensor_create(context, TM_FORMAT_F32, 2, w1, &all->w1, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 1, b1, &all->b1, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 2, w2, &all->w2, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 1, b2, &all->b2, error);
  return status;
}

static void destroy(weights *all) {
  tm_tensor_destroy(all->b2);
  tm_tensor_destroy(all->w2);
  tm_tensor_destroy(all->b1);
  tm_tensor_destroy(all->w1);
}

/* What it adds: x * w + b, as two nodes. */
static tm_status add_layer(tm_graph *graph, const char *name, uint32_t x, tm_tensor *w, tm_tensor *b, uint32_t *out_y,
                           tm_error *error) {
  char text[64];
  uint32_t product[2], sum[2];
  product[0] = x;
  (void)snprintf(text, sizeof text, "%s.weight", name);
  tm_status status = tm_graph_constant(graph, text, w, &product[1], error);
  if (status != TM_OK) return status;
  (void)snprintf(text, sizeof text, "%s.bias", name);
  status = tm_graph_constant(graph, text, b, &sum[1], error);
  if (status != TM_OK) return status;
  status = tm_graph_node(graph, name, TM_OP_MATMUL, NULL, 0, product, 2, NULL, 1, &sum[0], error);
  if (status != TM_OK) return status;
  return tm_graph_node(graph, NULL, TM_OP_ADD, NULL, 0, sum, 2, NULL, 1, out_y, error);
}

static tm_status build(tm_graph *graph, const weights *all, tm_error *error) {
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { ROWS, INNER } };
  uint32_t x, hidden, active, y;
  tm_status status = tm_graph_input(graph, "x", &layout, &x, error);
  if (status == TM_OK) status = add_layer(graph, "layer1", x, all->w1, all->b1, &hidden, error);
  if (status == TM_OK) status = tm_graph_node(graph, NULL, TM_OP_RELU, NULL, 0, &hidden, 1, NULL, 1, &active, error);
  if (status == TM_OK) status = add_layer(graph, "layer2", active, all->w2, all->b2, &y, error);
  return status == TM_OK ? tm_graph_output(graph, "y", y, error) : status;
}

static tm_status print(const tm_graph *graph, uint32_t form, tm_error *error) {
  uint64_t length = 0;
  tm_status status = tm_graph_print(graph, form, NULL, 0, &length, error);
  if (status != TM_OK) return status;
  char *text = malloc((size_t)length + 1);
  if (text == NULL) return TM_ERROR_NO_MEMORY;
  status = tm_graph_print(graph, form, text, length + 1, &length, error);
  if (status == TM_OK) (void)fputs(text, stdout);
  free(text);
  return status;
}

/* Weights and inputs for which every element of y is INNER * HIDDEN + 1. */
static void fill(tm_tensor *tensor, float value) {
  float *elements = tm_tensor_data(tensor);
  const uint64_t count = tm_tensor_operand(tensor)->element_count;
  for (uint64_t i = 0; i < count; i++) elements[i] = value;
}

/* Who runs what. */
static void describe(const tm_plan *plan) {
  tm_plan_step_description step = { .struct_size = sizeof step };
  for (uint32_t i = 0; tm_plan_step_describe(plan, i, &step) == TM_OK; i++)
    printf("node %u on %s, about %llu ns\n", step.node, step.device_name, (unsigned long long)step.predicted_ns);
}

static tm_status run_ten_times(tm_plan *plan, tm_tensor *x, tm_tensor *y, tm_error *error) {
  tm_plan_report report = { .struct_size = sizeof report };
  tm_status status = TM_OK;
  for (int i = 0; i < 10 && status == TM_OK; i++) status = tm_plan_run(plan, &x, 1, &y, 1, &report, error);
  if (status == TM_OK)
    printf("y = %g, %s\n", (double)*(const float *)tm_tensor_data(y), report.replayed ? "replayed" : "node by node");
  return status;
}

static tm_status run(tm_context *context, tm_graph *graph, const weights *all, tm_error *error) {
  const uint64_t x_dims[] = { ROWS, INNER }, y_dims[] = { ROWS, OUTER };
  tm_tensor *x = NULL, *y = NULL;
  tm_plan *plan = NULL;
  fill(all->w1, 1);
  fill(all->w2, 1);
  fill(all->b2, 1);
  tm_status status = tm_tensor_create(context, TM_FORMAT_F32, 2, x_dims, &x, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 2, y_dims, &y, error);
  if (status == TM_OK) fill(x, 1);
  if (status == TM_OK) status = tm_plan_create(graph, NULL, &plan, error);
  if (status == TM_OK) describe(plan);
  if (status == TM_OK) status = run_ten_times(plan, x, y, error);
  tm_plan_destroy(plan);
  tm_tensor_destroy(y);
  tm_tensor_destroy(x);
  return status;
}

int main(int argc, char **argv) {
  tm_error error = { .struct_size = sizeof error };
  tm_context *context = NULL;
  tm_graph *graph = NULL;
  weights all = { 0 };
  const char *wanted = argc > 1 ? argv[1] : "text";
  const uint32_t form = strcmp(wanted, "dot") == 0 ? TM_GRAPH_DOT : strcmp(wanted, "json") == 0 ? TM_GRAPH_JSON : TM_GRAPH_TEXT;
  tm_status status = tm_context_create(NULL, &context, &error);
  if (status == TM_OK) status = create(context, &all, &error);
  if (status == TM_OK) status = tm_graph_create(context, &graph, &error);
  if (status == TM_OK) status = build(graph, &all, &error);
  if (status == TM_OK) status = print(graph, form, &error);
  if (status == TM_OK && form == TM_GRAPH_TEXT) status = run(context, graph, &all, &error);
  if (status != TM_OK) fprintf(stderr, "%s: %s\n", tm_status_text(status), error.text);
  tm_graph_destroy(graph);
  destroy(&all);
  tm_context_destroy(context);
  return status == TM_OK ? 0 : 1;
}
