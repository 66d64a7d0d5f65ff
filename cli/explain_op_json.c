/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "explain_op.h"
#include "numerics_text.h"

static void print_cost(tm_json_writer *json, const char *key, const tm_candidate *candidate, uint64_t value) {
  if (tm_explained_has_cost(candidate)) tm_json_count(json, key, value);
  else tm_json_null(json, key);
}

static void print_factor(tm_json_writer *json, const char *key, const tm_candidate *candidate, double value) {
  if (tm_explained_has_cost(candidate)) tm_json_number(json, key, value);
  else tm_json_null(json, key);
}

static void print_numerics_json(const tm_candidate *candidate, tm_json_writer *json) {
  const bool bounded = candidate->numerics != TM_NUMERICS_N0 && candidate->numerics < TM_NUMERICS_N4;
  const bool summed = candidate->numerics == TM_NUMERICS_N2;
  tm_json_text(json, "numerics", tm_numerics_name(candidate->numerics));
  if (bounded)
    tm_json_number(json, "bound", candidate->numerics_bound);
  else
    tm_json_null(json, "bound");
  tm_json_text(json, "growth", summed ? tm_growth_name(candidate->growth) : NULL);
  tm_json_text(json, "accumulator", summed ? tm_format_name(candidate->accumulator) : NULL);
  tm_json_bool(json, "run_to_run", (candidate->numerics_flags & TM_NUMERICS_RUN_TO_RUN) != 0);
  tm_json_bool(json, "keeps_nonfinite", (candidate->numerics_flags & TM_NUMERICS_KEEPS_NONFINITE) != 0);
  tm_json_bool(json, "flushes_subnormals", (candidate->numerics_flags & TM_NUMERICS_FLUSHES) != 0);
}

/* null where no number of runs would choose it; of the end also where any more would. */
static void print_repeats(const tm_candidate *candidate, tm_json_writer *json) {
  if (candidate->repeats_from != 0) tm_json_count(json, "repeats_from", candidate->repeats_from);
  else tm_json_null(json, "repeats_from");
  if (candidate->repeats_from != 0 && candidate->repeats_to != UINT32_MAX) tm_json_count(json, "repeats_to", candidate->repeats_to);
  else tm_json_null(json, "repeats_to");
}

static void print_flip(const tm_candidate *candidate, tm_json_writer *json) {
  const bool would = candidate->flip_numerics != TM_NUMERICS_DEFAULT;
  tm_json_text(json, "flip_accept", would ? tm_numerics_name(candidate->flip_numerics) : NULL);
  if (would) tm_json_count(json, "flip_price_ns", candidate->flip_price_ns);
  else tm_json_null(json, "flip_price_ns");
}

static void print_candidate_json(const tm_candidate *candidate, tm_json_writer *json) {
  tm_json_begin_object(json, NULL, false);
  tm_json_text(json, "device", candidate->device_name);
  tm_json_text(json, "verdict", tm_verdict_name(candidate->verdict));
  tm_json_text(json, "reason", candidate->reason);
  tm_json_text(json, "level", tm_level_name(candidate->level));
  if (candidate->level != TM_LEVEL_REFUSED)
    print_numerics_json(candidate, json);
  else
    tm_json_null(json, "numerics");
  tm_json_text(json, "lowering", candidate->lowering);
  print_cost(json, "total_ns", candidate, candidate->total_ns);
  print_cost(json, "declared_ns", candidate, candidate->declared_ns);
  print_factor(json, "correction", candidate, candidate->correction);
  print_factor(json, "correction_spread", candidate, candidate->correction_spread);
  tm_json_count(json, "samples", candidate->sample_count);
  print_cost(json, "lowering_ns", candidate, candidate->lowering_ns);
  print_cost(json, "copy_ns", candidate, candidate->copy_ns);
  print_cost(json, "setup_ns", candidate, candidate->setup_ns);
  print_cost(json, "earned_ns", candidate, candidate->earned_ns);
  print_cost(json, "setup_share_ns", candidate, candidate->setup_share_ns);
  print_cost(json, "price_ns", candidate, candidate->price_ns);
  print_cost(json, "regret_ns", candidate, candidate->regret_ns);
  print_repeats(candidate, json);
  print_flip(candidate, json);
  print_cost(json, "workspace_bytes", candidate, candidate->workspace_bytes);
  tm_json_end_object(json);
}

static void print_operands_json(const char *key, const tm_operand *operands, uint32_t count, tm_json_writer *json) {
  tm_json_begin_array(json, key, false);
  for (uint32_t i = 0; i < count; i++) tm_operand_print_json(&operands[i], json);
  tm_json_end_array(json);
}

static void print_request_json(const tm_explained_op *explained, const tm_explanation_summary *summary, tm_json_writer *json) {
  const tm_op_request *request = explained->request;
  tm_json_text(json, "schema", "tensormorph.explain/1");
  tm_json_text(json, "op", request->op.name);
  print_operands_json("inputs", request->inputs, request->input_count, json);
  print_operands_json("outputs", request->outputs, request->op.output_count, json);
  tm_json_begin_object(json, "attributes", true);
  tm_op_attributes_print_json(&request->attributes, json);
  tm_json_end_object(json);
  tm_json_text(json, "accept", tm_numerics_name(summary->worst_numerics));
  if (explained->repeats != 0) tm_json_count(json, "repeats", explained->repeats);
  else tm_json_null(json, "repeats");
  tm_json_count(json, "flops", summary->flops);
  tm_json_count(json, "read_bytes", summary->read_bytes);
  tm_json_count(json, "written_bytes", summary->written_bytes);
}

static void print_choice_json(const tm_explained_op *explained, const tm_explanation_summary *summary, tm_json_writer *json) {
  char flip[512];
  tm_flip_describe(explained, flip, sizeof flip);
  if (summary->chosen == TM_ANY_DEVICE) tm_json_null(json, "chosen");
  else tm_json_count(json, "chosen", summary->chosen);
  tm_json_number(json, "margin", summary->margin > 0 ? summary->margin : (double)NAN);
  tm_json_text(json, "flip", flip);
  if (summary->flip[0] != '\0') tm_json_count(json, "flip_price_ns", summary->flip_price_ns);
  else tm_json_null(json, "flip_price_ns");
}

static void print_notes_json(const tm_explained_op *explained, tm_json_writer *json) {
  tm_json_begin_array(json, "notes", false);
  if (explained->request->note[0] != '\0') tm_json_text(json, NULL, explained->request->note);
  for (uint32_t i = 0; i < explained->absent->count; i++) tm_json_text(json, NULL, explained->absent->texts[i]);
  tm_json_end_array(json);
}

void tm_explained_op_print_json(const tm_explained_op *explained, tm_output_stream *stream) {
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_candidate           candidate;
  tm_json_writer         json;
  tm_explanation_summarize(explained->explanation, &summary);
  tm_json_init(&json, stream);
  tm_json_begin_object(&json, NULL, false);
  print_request_json(explained, &summary, &json);
  print_choice_json(explained, &summary, &json);
  print_notes_json(explained, &json);
  tm_json_begin_array(&json, "candidates", false);
  for (uint32_t i = 0; tm_explained_candidate_at(explained, i, &candidate); i++) print_candidate_json(&candidate, &json);
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}
