/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation of a graph as JSON: all of it, or of the nodes only one. */
#include "explain_graph.h"
#include "json_writer.h"
#include "numerics_text.h"
#include "op_request.h"

static const char *const change_kinds[] = { "", "numerics", "repeats", "memory", "device", "run_to_run", "resources", "weights" };
static const char *const why_names[] = { "only", "fastest", "setup", "copies", "overlap", "memory", "planned", "weights" };

static void print_ns(tm_json_writer *json, const char *key, uint64_t ns) {
  if (ns == TM_NEVER_NS) tm_json_null(json, key);
  else tm_json_count(json, key, ns);
}

static void print_index(tm_json_writer *json, const char *key, uint32_t index) {
  if (index == UINT32_MAX) tm_json_null(json, key);
  else tm_json_count(json, key, index);
}

/* ---- the plan ---- */

static void print_summary(const tm_explained_graph *explained, tm_json_writer *json) {
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_explanation_summarize(explained->explanation, &summary);
  tm_json_text(json, "accept", summary.worst_numerics == TM_NUMERICS_DEFAULT ? NULL : tm_numerics_name(summary.worst_numerics));
  tm_json_count(json, "repeats", summary.repeats);
  if (summary.max_memory_bytes == 0) tm_json_null(json, "max_memory_bytes");
  else tm_json_count(json, "max_memory_bytes", summary.max_memory_bytes);
  tm_json_count(json, "node_count", summary.node_count);
  tm_json_count(json, "total_ns", summary.total_ns);
  tm_json_count(json, "sum_ns", summary.sum_ns);
  tm_json_count(json, "node_ns", summary.node_ns);
  tm_json_count(json, "copy_ns", summary.copy_ns);
  tm_json_count(json, "given_copy_ns", summary.given_copy_ns);
  if (summary.bound_ns == 0) tm_json_null(json, "bound_ns");
  else tm_json_count(json, "bound_ns", summary.bound_ns);
  tm_json_count(json, "least_sum_ns", summary.least_sum_ns);
  tm_json_bool(json, "overlaps", summary.overlaps != 0);
  tm_json_bool(json, "exact", summary.is_exact != 0);
  tm_json_text(json, "state_memory", tm_memory_name(explained, summary.state_memory));
}

static void print_copies(const tm_explained_graph *explained, tm_json_writer *json) {
  tm_plan_copy copy = { .struct_size = sizeof copy };
  tm_json_begin_array(json, "copies", false);
  for (uint32_t i = 0; tm_plan_explanation_copy(explained->explanation, i, &copy) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_count(json, "value", copy.value);
    tm_json_text(json, "from", tm_memory_name(explained, copy.from));
    tm_json_text(json, "to", tm_memory_name(explained, copy.to));
    print_index(json, "producer", copy.producer);
    print_index(json, "reader", copy.reader);
    tm_json_count(json, "bytes", copy.bytes);
    tm_json_count(json, "ns", copy.ns);
    tm_json_count(json, "start_ns", copy.start_ns);
    tm_json_count(json, "end_ns", copy.end_ns);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_places(const tm_explained_graph *explained, tm_json_writer *json) {
  tm_plan_link        link = { .struct_size = sizeof link };
  tm_explained_memory memory = { .struct_size = sizeof memory };
  tm_json_begin_array(json, "links", false);
  for (uint32_t i = 0; tm_plan_explanation_link(explained->explanation, i, &link) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "from", tm_memory_name(explained, link.from));
    tm_json_text(json, "to", tm_memory_name(explained, link.to));
    tm_json_count(json, "copies", link.copy_count);
    tm_json_count(json, "bytes", link.bytes);
    tm_json_count(json, "ns", link.ns);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
  tm_json_begin_array(json, "memories", false);
  for (uint32_t i = 0; tm_plan_explanation_memory(explained->explanation, i, &memory) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "name", memory.name);
    tm_json_count(json, "peak_bytes", memory.peak_bytes);
    tm_json_count(json, "ns_per_mib", memory.ns_per_mib);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_critical(const tm_explained_graph *explained, tm_json_writer *json) {
  tm_critical_step step = { .struct_size = sizeof step };
  tm_json_begin_array(json, "critical_path", false);
  for (uint32_t i = 0; tm_plan_explanation_critical(explained->explanation, i, &step) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    print_index(json, "node", step.node);
    print_index(json, "copy", step.node == TM_NO_NODE ? step.copy : UINT32_MAX);
    tm_json_count(json, "ns", step.ns);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_others(const tm_explained_graph *explained, tm_json_writer *json) {
  tm_rejected_plan plan = { .struct_size = sizeof plan };
  tm_plan_change   change = { .struct_size = sizeof change };
  tm_json_begin_array(json, "rejected", false);
  for (uint32_t i = 0; tm_plan_explanation_rejected(explained->explanation, i, &plan) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "name", plan.name);
    tm_json_text(json, "device", plan.device_name[0] != '\0' ? plan.device_name : NULL);
    tm_json_count(json, "total_ns", plan.total_ns);
    tm_json_count(json, "sum_ns", plan.sum_ns);
    tm_json_count(json, "copied_bytes", plan.copied_bytes);
    tm_json_count(json, "excess_bytes", plan.excess_bytes);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
  tm_json_begin_array(json, "changes", false);
  for (uint32_t i = 0; tm_plan_explanation_change(explained->explanation, i, &change) == TM_OK; i++) {
    char text[160];
    tm_change_describe(&change, text, sizeof text);
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "kind", change_kinds[change.kind]);
    tm_json_count(json, "value", change.value);
    tm_json_text(json, "text", text);
    tm_json_bool(json, "possible", change.is_possible != 0);
    tm_json_count(json, "moved", change.moved_count);
    print_ns(json, "total_ns", change.total_ns);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

/* ---- nodes ---- */

static void print_answer(const tm_explained_graph *explained, const tm_node_candidate *candidate, tm_json_writer *json) {
  const bool has_answer = candidate->level != TM_LEVEL_REFUSED;
  tm_json_text(json, "device", candidate->device_name);
  tm_json_text(json, "lowering", candidate->lowering);
  tm_json_text(json, "verdict", tm_candidate_verdict(explained, candidate));
  tm_json_text(json, "reason", candidate->reason);
  tm_json_text(json, "level", tm_level_name(candidate->level));
  tm_json_text(json, "numerics", has_answer ? tm_numerics_name(candidate->numerics) : NULL);
  if (has_answer) tm_json_number(json, "bound", candidate->numerics_bound);
  else tm_json_null(json, "bound");
}

static void print_price(const tm_node_candidate *candidate, tm_json_writer *json) {
  tm_json_count(json, "declared_ns", candidate->declared_ns);
  tm_json_number(json, "correction", candidate->correction);
  tm_json_number(json, "correction_spread", candidate->correction_spread);
  tm_json_count(json, "samples", candidate->sample_count);
  tm_json_count(json, "run_ns", candidate->run_ns);
  tm_json_count(json, "lowering_ns", candidate->lowering_ns);
  tm_json_count(json, "staging_ns", candidate->staging_ns);
  tm_json_count(json, "setup_ns", candidate->setup_ns);
  tm_json_count(json, "setup_share_ns", candidate->setup_share_ns);
  tm_json_count(json, "cost_ns", candidate->cost_ns);
  tm_json_count(json, "copy_in_ns", candidate->copy_in_ns);
  tm_json_count(json, "copy_out_ns", candidate->copy_out_ns);
  tm_json_count(json, "total_ns", candidate->total_ns);
  tm_json_count(json, "memory_ns", candidate->memory_ns);
  print_ns(json, "wait_ns", candidate->wait_ns);
  print_ns(json, "moved_ns", candidate->moved_ns);
  print_ns(json, "forced_ns", candidate->forced_ns);
  print_ns(json, "regret_ns", candidate->regret_ns);
  tm_json_bool(json, "forced_is_bound", candidate->is_bound != 0);
  tm_json_bool(json, "in_place", candidate->in_place != 0);
  tm_json_count(json, "workspace_bytes", candidate->workspace_bytes);
}

static void print_candidates(const tm_explained_graph *explained, uint32_t node, tm_json_writer *json) {
  tm_node_candidate candidate = { .struct_size = sizeof candidate };
  tm_json_begin_array(json, "candidates", false);
  for (uint32_t i = 0; tm_plan_explanation_candidate(explained->explanation, node, i, &candidate) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, false);
    print_answer(explained, &candidate, json);
    if (candidate.verdict == TM_VERDICT_CHOSEN || candidate.verdict == TM_VERDICT_SLOWER) print_price(&candidate, json);
    print_index(json, "change", candidate.change);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_changed(const tm_explained_graph *explained, uint32_t node, tm_json_writer *json) {
  tm_plan_change  change = { .struct_size = sizeof change };
  tm_changed_node then = { .struct_size = sizeof then };
  tm_json_begin_array(json, "moves", false);
  for (uint32_t i = 0; tm_plan_explanation_change(explained->explanation, i, &change) == TM_OK; i++) {
    if (tm_plan_explanation_changed_node(explained->explanation, i, node, &then) != TM_OK || then.moves == 0) continue;
    tm_json_begin_object(json, NULL, true);
    tm_json_count(json, "change", i);
    tm_json_text(json, "device", then.device_name);
    tm_json_text(json, "lowering", then.lowering);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_operands(const tm_explained_graph *explained, const char *key, const uint32_t *values, uint32_t count,
                           tm_json_writer *json) {
  tm_value_description value = { .struct_size = sizeof value };
  tm_json_begin_array(json, key, false);
  for (uint32_t i = 0; i < count; i++)
    if (tm_graph_value_describe(explained->graph, values[i], &value) == TM_OK) tm_operand_print_json(&value.layout, json);
  tm_json_end_array(json);
}

static bool print_node(const tm_explained_graph *explained, uint32_t node, tm_json_writer *json) {
  tm_node_explanation one = { .struct_size = sizeof one };
  tm_node_description what = { .struct_size = sizeof what };
  if (tm_plan_explanation_node(explained->explanation, node, &one) != TM_OK) return false;
  (void)tm_graph_node_describe(explained->graph, node, &what);
  tm_json_begin_object(json, NULL, false);
  tm_json_count(json, "node", node);
  tm_json_text(json, "name", what.name[0] != '\0' ? what.name : NULL);
  tm_json_text(json, "op", what.op_name);
  print_operands(explained, "inputs", what.inputs, what.input_count, json);
  print_operands(explained, "outputs", what.outputs, what.output_count, json);
  tm_json_text(json, "accept", tm_numerics_name(one.worst_numerics));
  tm_json_count(json, "flops", one.flops);
  tm_json_count(json, "read_bytes", one.read_bytes);
  tm_json_count(json, "written_bytes", one.written_bytes);
  tm_json_text(json, "device", one.device_name);
  tm_json_text(json, "lowering", one.lowering);
  tm_json_text(json, "why", why_names[one.why]);
  tm_json_count(json, "predicted_ns", one.predicted_ns);
  print_index(json, "runner_up", one.runner_up);
  print_ns(json, "regret_ns", one.regret_ns);
  tm_json_count(json, "fastest", one.fastest);
  tm_json_count(json, "start_ns", one.start_ns);
  tm_json_count(json, "end_ns", one.end_ns);
  tm_json_count(json, "wait_ns", one.wait_ns);
  tm_json_bool(json, "critical", one.is_critical != 0);
  print_index(json, "change", one.change);
  print_changed(explained, node, json);
  print_candidates(explained, node, json);
  tm_json_end_object(json);
  return true;
}

void tm_explained_graph_print_json(const tm_explained_graph *explained, uint32_t node, tm_output_stream *stream) {
  tm_json_writer json;
  tm_json_init(&json, stream);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.explain-graph/1");
  tm_json_text(&json, "graph", explained->path);
  print_summary(explained, &json);
  tm_json_begin_array(&json, "nodes", false);
  if (node != TM_NO_NODE) (void)print_node(explained, node, &json);
  for (uint32_t i = 0; node == TM_NO_NODE && print_node(explained, i, &json); i++) {}
  tm_json_end_array(&json);
  print_copies(explained, &json);
  print_places(explained, &json);
  print_critical(explained, &json);
  print_others(explained, &json);
  tm_json_begin_array(&json, "notes", false);
  for (uint32_t i = 0; i < explained->absent->count; i++) tm_json_text(&json, NULL, explained->absent->texts[i]);
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}
