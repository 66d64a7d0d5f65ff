/* SPDX-License-Identifier: Apache-2.0 */
#include "explain_graph.h"

#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "nearest_name.h"
#include "quantity.h"
#include "session.h"

/* By name first: a name may look like a number. */
static tm_status find_node(const tm_graph *graph, const char *wanted, uint32_t *out_node, tm_error *error) {
  tm_node_description node = { .struct_size = sizeof node };
  tm_nearest_name     nearest;
  uint64_t            number;
  uint32_t            count = 0;
  tm_nearest_name_init(&nearest, wanted);
  for (; tm_graph_node_describe(graph, count, &node) == TM_OK; count++) {
    if (node.name[0] == '\0') continue;
    *out_node = count;
    if (strcmp(node.name, wanted) == 0) return TM_OK;
    tm_nearest_name_offer(&nearest, node.name);
  }
  if (tm_quantity_parse_count(wanted, &number) && number < count) {
    *out_node = (uint32_t)number;
    return TM_OK;
  }
  if (count == 0) return tm_refuse(error, TM_ERROR_ARGUMENT, "--node %.200s: the graph has no nodes", wanted);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "--node: the graph has no node \"%.200s\"; %s%s%s%s%u", wanted,
                   nearest.best != NULL ? "did you mean \"" : "", nearest.best != NULL ? nearest.best : "",
                   nearest.best != NULL ? "\"? " : "", "numbers go from 0 to ", count - 1);
}

static tm_status explain(tm_graph *graph, const tm_invocation *invocation, tm_plan_explanation **out_explanation, tm_error *error) {
  const tm_plan_options options = {
    .struct_size = sizeof options,
    .worst_numerics = TM_NUMERICS_DEFAULT,
    .repeats = tm_arguments_count(&invocation->arguments, "repeats", 0),
    .max_memory_bytes = invocation->preferences.max_memory_bytes,
  };
  return tm_graph_explain(graph, &options, out_explanation, error);
}

static void print(const tm_explained_graph *explained, uint32_t node, tm_invocation *invocation) {
  if (invocation->preferences.json) tm_explained_graph_print_json(explained, node, invocation->output);
  else if (node == TM_NO_NODE) tm_explained_graph_print(explained, invocation);
  else tm_explained_node_print(explained, node, invocation);
}

static int run_in(tm_context *context, tm_invocation *invocation) {
  const char          *path = tm_arguments_value(&invocation->arguments, "graph");
  const char          *wanted = tm_arguments_value(&invocation->arguments, "node");
  tm_graph            *graph = NULL;
  tm_plan_explanation *explanation = NULL;
  tm_elsewhere_notes   absent = { .count = 0 };
  tm_error             error = TM_CLI_ERROR_INIT;
  uint32_t             node = TM_NO_NODE;
  tm_status            status = tm_session_require_device(context, &error);
  if (status == TM_OK) status = tm_graph_load(context, path, &graph, &error);
  if (status == TM_OK && wanted != NULL) status = find_node(graph, wanted, &node, &error);
  const bool is_asked_well = status == TM_OK;     /* what is wrong from here on is the graph */
  if (is_asked_well) status = explain(graph, invocation, &explanation, &error);
  tm_elsewhere_notes_absent(&absent, context, &invocation->preferences.devices, "goes");
  (void)tm_elsewhere_notes_left_out(&absent, context);
  if (status == TM_OK) print(&(tm_explained_graph){ path, graph, explanation, &absent }, node, invocation);
  tm_plan_explanation_destroy(explanation);
  tm_graph_destroy(graph);
  if (is_asked_well && status == TM_ERROR_ARGUMENT) return tm_complain_as(TM_EXIT_TROUBLE, "%s: %s", path, error.text);
  return status == TM_OK ? TM_EXIT_OK : tm_complain(&error);
}

/* The limit is meant for the plan: the command itself needs more than a small one. */
int tm_explain_graph(tm_invocation *invocation) {
  const tm_session_needs needs = { .uses_profile = true };
  const uint64_t         max_memory_bytes = invocation->preferences.max_memory_bytes;
  tm_context            *context = NULL;
  tm_error               error = TM_CLI_ERROR_INIT;
  if (tm_arguments_count(&invocation->arguments, "repeats", 1) == 0)
    return tm_complain_as(TM_EXIT_USAGE, "--repeats wants 1 or more");
  invocation->preferences.max_memory_bytes = 0;
  if (tm_session_open(&invocation->preferences, &needs, &context, &error) != TM_OK) return tm_complain(&error);
  invocation->preferences.max_memory_bytes = max_memory_bytes;
  const int exit_code = run_in(context, invocation);
  tm_context_destroy(context);
  return exit_code;
}
