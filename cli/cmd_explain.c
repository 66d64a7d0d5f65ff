/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "elsewhere_notes.h"
#include "explain_graph.h"
#include "json_writer.h"
#include "numerics_text.h"
#include "op_request.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"
#include "session.h"

/* ------------------------------------------------------------------------------------------------------ tables ---- */

/* Headings are short so that everything a cost consists of fits into 80 cells. */
static const tm_column columns[] = {
  { "device", TM_COLUMN_TEXT, 0, "" },  { "verdict", TM_COLUMN_TEXT, 0, "" }, { "level", TM_COLUMN_TEXT, 0, "" },
  { "price", TM_COLUMN_TEXT, 0, "" },   { "total", TM_COLUMN_TEXT, 0, "" },   { "formula", TM_COLUMN_TEXT, 0, "" },
  { "corr(n)", TM_COLUMN_TEXT, 0, "" }, { "lower", TM_COLUMN_TEXT, 0, "" },   { "copies", TM_COLUMN_TEXT, 0, "" },
  { "setup", TM_COLUMN_TEXT, 0, "" } };
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])
static const tm_column_view views[] = { { 0, 12, 0, false, NULL }, { 1, 0, 0, false, NULL }, { 2, 0, 5, false, NULL },
                                        { 3, 0, 0, false, NULL },  { 4, 0, 0, false, NULL }, { 5, 0, 3, false, NULL },
                                        { 6, 0, 4, false, NULL },  { 7, 0, 2, false, NULL }, { 8, 0, 2, false, NULL },
                                        { 9, 0, 1, false, NULL } };

/* A table keeps no texts, so the rows' texts live here while one row is looked at. */
typedef struct row_texts {
  tm_explanation *explanation;
  tm_quantity     quantities[6];
  char            device[80];
  char            level[32];
  char            correction[48];
} row_texts;

static bool candidate_at(const tm_explanation *explanation, uint32_t index, tm_candidate *candidate) {
  *candidate = (tm_candidate){ .struct_size = sizeof *candidate };
  return tm_explanation_candidate(explanation, index, candidate) == TM_OK;
}

/* A refusal with a way around it: the way has a row of its own, and says more. */
static bool has_way_around(const tm_explanation *explanation, const tm_candidate *candidate) {
  tm_candidate other;
  if (candidate->level != TM_LEVEL_REFUSED || candidate->lowering[0] != '\0') return false;
  for (uint32_t i = 0; candidate_at(explanation, i, &other); i++)
    if (other.device == candidate->device && other.lowering[0] != '\0') return true;
  return false;
}

/* A candidate that cannot run it has no cost; a cost of 0 is one that nobody computed. */
static bool has_cost(const tm_candidate *candidate) {
  return candidate->verdict != TM_VERDICT_REFUSED && candidate->verdict != TM_VERDICT_EXCLUDED &&
         candidate->total_ns != 0;
}

static tm_cell duration_cell(const tm_candidate *candidate, uint64_t duration_ns, tm_quantity *quantity) {
  if (!has_cost(candidate)) return tm_cell_undefined(TM_COLUMN_TEXT);
  return tm_cell_text(duration_ns == 0 ? "0" : tm_quantity_duration(duration_ns, quantity));
}

/* The candidate of the table's `row`, which has none for a refusal with a way around it. */
static bool find_row(const tm_explanation *explanation, uint64_t row, tm_candidate *candidate) {
  for (uint32_t i = 0; candidate_at(explanation, i, candidate); i++)
    if (!has_way_around(explanation, candidate) && row-- == 0) return true;
  return false;
}

static bool candidate_row(const void *source, uint64_t row, tm_cell *cells) {
  row_texts   *texts = (row_texts *)(uintptr_t)source;
  tm_candidate candidate;
  if (!find_row(texts->explanation, row, &candidate)) return false;
  const uint64_t durations[] = { candidate.price_ns, candidate.total_ns, candidate.declared_ns,
                                 candidate.lowering_ns, candidate.copy_ns,
                                 candidate.setup_ns };
  static const uint8_t places[] = { 3, 4, 5, 7, 8, 9 };
  snprintf(texts->device, sizeof texts->device, "%s%s", candidate.device_name, candidate.lowering[0] != '\0' ? " (changed)" : "");
  snprintf(texts->level, sizeof texts->level, "%s %s", tm_level_name(candidate.level),
           tm_numerics_name(candidate.numerics));
  snprintf(texts->correction, sizeof texts->correction, "x%.3g(%llu)", candidate.correction,
           (unsigned long long)candidate.sample_count);
  cells[0] = tm_cell_text(texts->device);
  cells[1] = tm_cell_text(tm_verdict_name(candidate.verdict));
  cells[2] = candidate.level != TM_LEVEL_REFUSED ? tm_cell_text(texts->level) : tm_cell_undefined(TM_COLUMN_TEXT);
  for (uint32_t i = 0; i < sizeof places; i++)
    cells[places[i]] = duration_cell(&candidate, durations[i], &texts->quantities[i]);
  cells[6] = has_cost(&candidate) ? tm_cell_text(texts->correction) : tm_cell_undefined(TM_COLUMN_TEXT);
  return true;
}

static void print_request(const tm_op_request *request, const tm_explanation_summary *summary,
                          tm_output_stream *stream) {
  char        text[256];
  tm_quantity a, b, c;
  const char *plural = summary->flops == 1 ? "" : "s";
  tm_output_text(stream, request->op.name);
  for (uint32_t i = 0; i < request->input_count; i++) {
    tm_operand_describe(&request->inputs[i], text, sizeof text);
    tm_output_format(stream, "%s %s%s", i > 0 ? "," : "", text,
                     (request->inputs[i].flags & TM_OPERAND_CONSTANT) != 0 ? " (constant)" : "");
  }
  for (uint32_t i = 0; i < request->op.output_count; i++) {
    tm_operand_describe(&request->outputs[i], text, sizeof text);
    tm_output_format(stream, "%s %s", i > 0 ? "," : " ->", text);
  }
  tm_op_attributes_print(&request->attributes, text, sizeof text);
  if (text[0] != '\0') tm_output_format(stream, "  [%s]", text);
  tm_output_format(stream, "\nwork: %s operation%s, %s read, %s written; accepted: %s or better\n",
                   tm_quantity_short_count(summary->flops, &a), plural, tm_quantity_bytes(summary->read_bytes, &b),
                   tm_quantity_bytes(summary->written_bytes, &c), tm_numerics_name(summary->worst_numerics));
}

/* "; 2 s to be paid once, 3 ms of it earned" */
static void describe_setup(const tm_candidate *candidate, char *text, size_t capacity) {
  tm_quantity setup, earned;
  text[0] = '\0';
  if (!has_cost(candidate) || candidate->setup_ns == 0) return;
  const char *earned_text = candidate->earned_ns == 0 ? "none" : tm_quantity_duration(candidate->earned_ns, &earned);
  snprintf(text, capacity, "%s to be paid once, %s of it earned", tm_quantity_duration(candidate->setup_ns, &setup), earned_text);
}

/* What a table has no room for: lowering, the promise in full, what is paid once, the reason. */
static void print_details(tm_explanation *explanation, tm_output_stream *stream, uint32_t width) {
  tm_candidate candidate;
  for (uint32_t i = 0; candidate_at(explanation, i, &candidate); i++) {
    const bool is_lowered = candidate.lowering[0] != '\0', has_other = has_way_around(explanation, &candidate);
    char head[160], promise[64] = "", setup[96], text[1200];
    snprintf(head, sizeof head, is_lowered ? "%s (changed) after " : has_other ? "%s as it is: " : "%s: ", candidate.device_name);
    if (candidate.level != TM_LEVEL_REFUSED)
      tm_numerics_describe(candidate.numerics, candidate.numerics_bound, candidate.growth, candidate.accumulator,
                           promise, sizeof promise);
    describe_setup(&candidate, setup, sizeof setup);
    const bool has_reason = candidate.reason[0] != '\0';
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", candidate.lowering, is_lowered ? ": " : "", promise,
             promise[0] != '\0' && setup[0] != '\0' ? "; " : "", setup,
             (promise[0] != '\0' || setup[0] != '\0') && has_reason ? "; " : "", candidate.reason);
    tm_printable_sentence(stream, head, text, width);
  }
}

static void print_explanation(const tm_op_request *request, tm_explanation *explanation, const tm_elsewhere_notes *absent,
                              tm_invocation *invocation) {
  tm_output_stream      *stream = invocation->output;
  const uint32_t         width = invocation->terminal.width;
  const tm_table_look    look = { .width = width, .color = invocation->terminal.color };
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  row_texts              texts = { .explanation = explanation };
  tm_explanation_summarize(explanation, &summary);
  print_request(request, &summary, stream);
  if (request->note[0] != '\0') tm_printable_sentence(stream, "note: ", request->note, width);
  for (uint32_t i = 0; i < absent->count; i++) tm_printable_sentence(stream, "note: ", absent->texts[i], width);
  tm_output_char(stream, '\n');
  const tm_rows rows = { columns, COLUMN_COUNT, candidate_row, &texts, UINT64_MAX, NULL };
  tm_rows_print_table(&rows, views, COLUMN_COUNT, &look, stream);
  tm_output_char(stream, '\n');
  print_details(explanation, stream, width);
  if (summary.margin > 0) tm_output_format(stream, "margin: the next price is %.3g times the least\n", summary.margin);
  if (summary.flip[0] != '\0') tm_printable_sentence(stream, "what would change it: ", summary.flip, width);
}

/* -------------------------------------------------------------------------------------------------------- JSON ---- */

static void print_cost(tm_json_writer *json, const char *key, const tm_candidate *candidate, uint64_t value) {
  if (has_cost(candidate))
    tm_json_count(json, key, value);
  else
    tm_json_null(json, key);
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
  if (has_cost(candidate))
    tm_json_number(json, "correction", candidate->correction);
  else
    tm_json_null(json, "correction");
  if (has_cost(candidate))
    tm_json_number(json, "correction_spread", candidate->correction_spread);
  else
    tm_json_null(json, "correction_spread");
  tm_json_count(json, "samples", candidate->sample_count);
  print_cost(json, "lowering_ns", candidate, candidate->lowering_ns);
  print_cost(json, "copy_ns", candidate, candidate->copy_ns);
  print_cost(json, "setup_ns", candidate, candidate->setup_ns);
  print_cost(json, "earned_ns", candidate, candidate->earned_ns);
  print_cost(json, "price_ns", candidate, candidate->price_ns);
  print_cost(json, "workspace_bytes", candidate, candidate->workspace_bytes);
  tm_json_end_object(json);
}

static void print_operands_json(const char *key, const tm_operand *operands, uint32_t count, tm_json_writer *json) {
  tm_json_begin_array(json, key, false);
  for (uint32_t i = 0; i < count; i++) tm_operand_print_json(&operands[i], json);
  tm_json_end_array(json);
}

static void print_summary_json(const tm_op_request *request, const tm_explanation_summary *summary,
                               const tm_elsewhere_notes *absent, tm_json_writer *json) {
  tm_json_text(json, "schema", "tensormorph.explain/1");
  tm_json_text(json, "op", request->op.name);
  print_operands_json("inputs", request->inputs, request->input_count, json);
  print_operands_json("outputs", request->outputs, request->op.output_count, json);
  tm_json_begin_object(json, "attributes", true);
  tm_op_attributes_print_json(&request->attributes, json);
  tm_json_end_object(json);
  tm_json_text(json, "accept", tm_numerics_name(summary->worst_numerics));
  tm_json_count(json, "flops", summary->flops);
  tm_json_count(json, "read_bytes", summary->read_bytes);
  tm_json_count(json, "written_bytes", summary->written_bytes);
  if (summary->chosen == TM_ANY_DEVICE)
    tm_json_null(json, "chosen");
  else
    tm_json_count(json, "chosen", summary->chosen);
  tm_json_number(json, "margin", summary->margin > 0 ? summary->margin : (double)NAN);
  tm_json_text(json, "flip", summary->flip);
  tm_json_begin_array(json, "notes", false);
  if (request->note[0] != '\0') tm_json_text(json, NULL, request->note);
  for (uint32_t i = 0; i < absent->count; i++) tm_json_text(json, NULL, absent->texts[i]);
  tm_json_end_array(json);
}

static void print_json(const tm_op_request *request, tm_explanation *explanation, const tm_elsewhere_notes *absent,
                       tm_output_stream *stream) {
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_candidate           candidate = { .struct_size = sizeof candidate };
  tm_json_writer         json;
  tm_explanation_summarize(explanation, &summary);
  tm_json_init(&json, stream);
  tm_json_begin_object(&json, NULL, false);
  print_summary_json(request, &summary, absent, &json);
  tm_json_begin_array(&json, "candidates", false);
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++)
    print_candidate_json(&candidate, &json);
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

/* ----------------------------------------------------------------------------------------------------- nobody can ---- */

/* "; left out by request, and not asked: a, b" */
static void append_left_out(tm_context *context, char *text, size_t capacity) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  bool                   any = false;
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    const size_t used = strlen(text);
    if (backend.state != TM_BACKEND_EXCLUDED || used + 128 >= capacity) continue;
    snprintf(text + used, capacity - used, "%s%.64s", any ? ", " : "; left out by request, and not asked: ", backend.name);
    any = true;
  }
}

/* Why, the candidates say; here is that, and what would change it. */
static void describe_nobody(tm_context *context, const tm_op_request *request, const tm_explanation_summary *summary, char *text,
                            size_t capacity) {
  const bool has_flip = summary->flip[0] != '\0';
  snprintf(text, capacity, "no device can run %s as asked; %s", request->op.name,
           has_flip ? summary->flip : "no --accept would change that");
  append_left_out(context, text, capacity);
}

static int explain(tm_context *context, const tm_op_request *request, tm_invocation *invocation) {
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  tm_explanation      *explanation = NULL;
  tm_error             error = TM_CLI_ERROR_INIT;
  tm_elsewhere_notes   absent = { .count = 0 };
  const uint32_t       attribute_bytes = request->op.attribute_bytes;
  if (tm_explain(context, request->op.op, attribute_bytes > 0 ? request->attributes.value.bytes : NULL, attribute_bytes,
                 request->inputs, request->input_count, request->outputs, request->op.output_count, &options,
                 &explanation, &error) != TM_OK)
    return tm_complain(&error);
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  char                   nobody[512] = "";
  tm_elsewhere_notes_absent(&absent, context, &invocation->preferences.devices, "goes");
  tm_explanation_summarize(explanation, &summary);
  if (summary.chosen == TM_ANY_DEVICE) describe_nobody(context, request, &summary, nobody, sizeof nobody);
  if (invocation->preferences.json)
    print_json(request, explanation, &absent, invocation->output);
  else
    print_explanation(request, explanation, &absent, invocation);
  tm_explanation_destroy(explanation);
  return nobody[0] == '\0' ? TM_EXIT_OK : tm_complain_as(TM_EXIT_TROUBLE, "%s", nobody);
}

/* What goes with one of the two only. */
static int check_usage(const tm_arguments *arguments, bool has_graph) {
  static const char *const of_op[] = {"dtype",       "shape", "output-dtype", "attr", "transpose-a",
                                      "transpose-b", "axis",  "constant",     NULL};
  static const char *const of_graph[] = { "node", "repeats", NULL };
  if (has_graph == (arguments->operand_count != 0))
    return tm_complain_as(TM_EXIT_USAGE,
                          "%s: usage: tensormorph explain OP [OPTION...], or explain --graph FILE [OPTION...]; --help says more",
                          has_graph ? "an operation and a graph" : "something is missing");
  for (const char *const *name = has_graph ? of_op : of_graph; *name != NULL; name++)
    if (tm_arguments_has(arguments, *name))
      return tm_complain_as(TM_EXIT_USAGE, "--%s goes with %s only", *name, has_graph ? "an operation" : "--graph");
  return TM_EXIT_OK;
}

static int run_op(tm_invocation *invocation) {
  const tm_session_needs needs = { .uses_profile = true };
  tm_context            *context = NULL;
  tm_op_request          request;
  tm_error               error = TM_CLI_ERROR_INIT;
  if (tm_op_request_parse(&invocation->arguments, &request, &error) != TM_OK) return tm_complain(&error);
  if (tm_session_open(&invocation->preferences, &needs, &context, &error) != TM_OK) return tm_complain(&error);
  /* With every device excluded there is nothing to explain but that. */
  const int exit_code =
      tm_session_require_device(context, &error) == TM_OK ? explain(context, &request, invocation) : tm_complain(&error);
  tm_context_destroy(context);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const bool has_graph = tm_arguments_has(&invocation->arguments, "graph");
  const int  exit_code = check_usage(&invocation->arguments, has_graph);
  if (exit_code != TM_EXIT_OK) return exit_code;
  return has_graph ? tm_explain_graph(invocation) : run_op(invocation);
}

static const tm_flag flags[] = {
  TM_OP_REQUEST_FLAGS,
  TM_EXPLAIN_GRAPH_FLAGS,
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_explain = {
  .name = "explain",
  .operands = "OP | --graph FILE",
  .operand_min = 0,
  .operand_max = 1,
  .summary = "say where an operation, or each node of a saved graph, would run, what every candidate would cost, why the others "
             "do not get it, and what would change that",
  .notes =
      "Example: tensormorph explain matmul --dtype q4_0,f32 --shape 4096x4096,4096x64\n"
      "The least price is chosen: price = total + setup, less what of the setup is earned; "
      "total = formula x corr + lower + copies.\n"
      "formula: the device's declared cost of a warm run. corr(n): what that was to be multiplied by in n runs that were "
      "measured, x1(0) before the first. lower: changing operands to what the device takes (lowering). copies: to and from "
      "the device's memory. setup: paid once (opening, compiling); it is earned by the time that earlier runs lost for "
      "want of it, so \"none of it earned\" means that nothing was lost so far. (changed): the device takes it only after "
      "what its line below names.\n"
      "N0: bits equal to the reference. N1(b): within b ulps. N2(b, growth, format): within b x growth x the rounding of "
      "format, of the sum of all terms' magnitudes; growth is 1, log n or n, for n terms. N3(b): mean square error within b.\n"
      "The exit code is 3 if nobody can run it as asked.\n"
      "With --graph: what tm_graph_save wrote is placed as a whole, nothing is run, and no bytes of constants are needed. A line "
      "a node: the time of its device; why (only choice; fastest; set-up: another is faster but for what is paid once; copies: "
      "another is faster but for copies to and from it; overlap: others work meanwhile; memory: its limit); the next best "
      "device, and the regret: how much longer a run would be with the node there and all others where that is best then; of "
      "a plan whose devices work at the same time, with this node alone moved, so that it may be below 0: not everything is tried. "
      "--max-memory is what the plan may take in any one memory.\n"
      "With --node: total = formula x corr + lower + copies + setup. copies: what this node alone needs, everything else as it "
      "is, so that totals differ by what moving only this node changes; setup: a run's share of what is paid once. would "
      "change it: the graph placed again with that requirement; the difference is that of whole runs.",
  .flags = flags,
  .run = run,
};
