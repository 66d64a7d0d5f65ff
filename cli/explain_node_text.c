/* SPDX-License-Identifier: Apache-2.0 */
/* One node of a graph as text: every candidate with what it would cost, why it is where it is, and what would move it. */
#include <stdio.h>
#include <string.h>

#include "explain_graph.h"
#include "numerics_text.h"
#include "op_request.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"

static const tm_column columns[] = {
  { "device", TM_COLUMN_TEXT, 0, "" }, { "verdict", TM_COLUMN_TEXT, 0, "" }, { "regret", TM_COLUMN_TEXT, 0, "" },
  { "total", TM_COLUMN_TEXT, 0, "" },  { "formula", TM_COLUMN_TEXT, 0, "" }, { "corr(n)", TM_COLUMN_TEXT, 0, "" },
  { "lower", TM_COLUMN_TEXT, 0, "" },  { "copies", TM_COLUMN_TEXT, 0, "" },  { "setup", TM_COLUMN_TEXT, 0, "" },
  { "wait", TM_COLUMN_TEXT, 0, "" },   { "memory", TM_COLUMN_TEXT, 0, "" },  { "level", TM_COLUMN_TEXT, 0, "" } };
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])
/* Who, the verdict and the total always stay. */
static const tm_column_view views[] = { { 0, 9, 0, false, NULL },  { 1, 0, 0, false, NULL },  { 2, 0, 1, false, NULL },
                                        { 3, 0, 0, false, NULL },  { 4, 0, 4, false, NULL },  { 5, 0, 5, false, NULL },
                                        { 6, 0, 3, false, NULL },  { 7, 0, 2, false, NULL },  { 8, 0, 2, false, NULL },
                                        { 9, 0, 6, false, NULL },  { 10, 0, 7, false, NULL }, { 11, 0, 8, false, NULL } };

typedef struct row_texts {
  const tm_explained_graph *explained;
  uint32_t    node;
  tm_quantity quantities[8];
  char        device[160];
  char        level[32];
  char        correction[48];
  char        regret[48];
} row_texts;

static bool candidate_at(const tm_explained_graph *explained, uint32_t node, uint32_t index, tm_node_candidate *candidate) {
  *candidate = (tm_node_candidate){ .struct_size = sizeof *candidate };
  return tm_plan_explanation_candidate(explained->explanation, node, index, candidate) == TM_OK;
}

static bool can_run(const tm_node_candidate *candidate) { return candidate->total_ns != 0 || candidate->forced_ns != TM_NEVER_NS; }

/* A refusal with a way around it: the way has a row of its own, and says more. */
static bool has_way_around(const row_texts *texts, const tm_node_candidate *candidate) {
  tm_node_candidate other;
  if (candidate->level != TM_LEVEL_REFUSED || candidate->lowering[0] != '\0') return false;
  for (uint32_t i = 0; candidate_at(texts->explained, texts->node, i, &other); i++)
    if (other.device == candidate->device && other.lowering[0] != '\0') return true;
  return false;
}

static bool find_row(const row_texts *texts, uint64_t row, tm_node_candidate *candidate) {
  for (uint32_t i = 0; candidate_at(texts->explained, texts->node, i, candidate); i++)
    if (!has_way_around(texts, candidate) && row-- == 0) return true;
  return false;
}

static tm_cell duration_cell(const tm_node_candidate *candidate, uint64_t ns, tm_quantity *quantity) {
  if (!can_run(candidate) || ns == TM_NEVER_NS) return tm_cell_undefined(TM_COLUMN_TEXT);
  return tm_cell_text(ns == 0 ? "0" : tm_quantity_duration(ns, quantity));
}

static bool candidate_row(const void *source, uint64_t row, tm_cell *cells) {
  static const uint8_t places[] = { 3, 4, 6, 7, 8, 9, 10 };
  row_texts           *texts = (row_texts *)(uintptr_t)source;
  tm_node_candidate    candidate;
  if (!find_row(texts, row, &candidate)) return false;
  const tm_regret regret = tm_candidate_regret(texts->explained, &candidate);
  const bool      has_regret = regret.is_known && can_run(&candidate) && !tm_candidate_lacks_room(texts->explained, &candidate);
  const uint64_t durations[] = { candidate.total_ns, candidate.declared_ns, candidate.lowering_ns,
                                 candidate.staging_ns + candidate.copy_in_ns + candidate.copy_out_ns, candidate.setup_share_ns,
                                 candidate.wait_ns, candidate.memory_ns };
  tm_way_describe(candidate.device_name, candidate.lowering, texts->device, sizeof texts->device);
  snprintf(texts->level, sizeof texts->level, "%s %s", tm_level_name(candidate.level), tm_numerics_name(candidate.numerics));
  snprintf(texts->correction, sizeof texts->correction, "x%.3g(%llu)", candidate.correction,
           (unsigned long long)candidate.sample_count);
  cells[0] = tm_cell_text(texts->device);
  cells[1] = tm_cell_text(tm_candidate_verdict(texts->explained, &candidate));
  tm_regret_describe(&regret, texts->regret, sizeof texts->regret);
  cells[2] = has_regret ? tm_cell_text(texts->regret) : tm_cell_undefined(TM_COLUMN_TEXT);
  for (uint32_t i = 0; i < sizeof places; i++) cells[places[i]] = duration_cell(&candidate, durations[i], &texts->quantities[i]);
  cells[5] = can_run(&candidate) ? tm_cell_text(texts->correction) : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[11] = candidate.level != TM_LEVEL_REFUSED ? tm_cell_text(texts->level) : tm_cell_undefined(TM_COLUMN_TEXT);
  return true;
}

/* ---- the node ---- */

typedef struct page {
  const tm_explained_graph *explained;
  tm_output_stream         *stream;
  uint32_t                  width;
  uint32_t                  node;
} page;

static void append_values(const page *p, const uint32_t *values, uint32_t count, const char *head, char *text, size_t capacity) {
  for (uint32_t i = 0; i < count; i++) {
    tm_value_description value = { .struct_size = sizeof value };
    char                 layout[256];
    const size_t         used = strlen(text);
    if (tm_graph_value_describe(p->explained->graph, values[i], &value) != TM_OK) continue;
    tm_operand_describe(&value.layout, layout, sizeof layout);
    snprintf(text + used, capacity - used, "%s%s%s", i == 0 ? head : ", ", layout,
             (value.layout.flags & TM_OPERAND_CONSTANT) != 0 ? " (constant)" : "");
  }
}

static void print_node(const page *p, const tm_node_explanation *one) {
  tm_node_description node = { .struct_size = sizeof node };
  tm_quantity         a, b, c;
  char                name[320], head[340], text[2000];
  (void)tm_graph_node_describe(p->explained->graph, p->node, &node);
  tm_node_describe(p->explained, p->node, name, sizeof name);
  snprintf(head, sizeof head, "node %s: ", name);
  snprintf(text, sizeof text, "%s", node.op_name);
  append_values(p, node.inputs, node.input_count, " ", text, sizeof text);
  append_values(p, node.outputs, node.output_count, " -> ", text, sizeof text);
  tm_printable_sentence(p->stream, head, text, p->width);
  snprintf(text, sizeof text, "%s operation%s, %s read, %s written; accepted: %s or better",
           tm_quantity_short_count(one->flops, &a), one->flops == 1 ? "" : "s", tm_quantity_bytes(one->read_bytes, &b),
           tm_quantity_bytes(one->written_bytes, &c), tm_numerics_name(one->worst_numerics));
  tm_printable_sentence(p->stream, "work: ", text, p->width);
}

/* ---- its operands, and when it runs ---- */

static bool is_constant(const page *p, uint32_t number) {
  tm_value_description value = { .struct_size = sizeof value };
  return tm_graph_value_describe(p->explained->graph, number, &value) == TM_OK && value.kind == TM_VALUE_CONSTANT;
}

static void print_copies(const page *p) {
  tm_plan_copy copy = { .struct_size = sizeof copy };
  for (uint32_t i = 0; tm_plan_explanation_copy(p->explained->explanation, i, &copy) == TM_OK; i++) {
    tm_quantity bytes, time;
    char        value[256] = "", text[600];
    if (copy.reader != p->node && copy.producer != p->node) continue;
    tm_value_describe(p->explained, copy.value, value, sizeof value);
    snprintf(text, sizeof text, "%s from %s to %s, %s, %s%s", value, tm_memory_name(p->explained, copy.from),
             tm_memory_name(p->explained, copy.to), tm_quantity_bytes(copy.bytes, &bytes), tm_quantity_duration(copy.ns, &time),
             is_constant(p, copy.value) ? ", its share of being copied once for all runs" : "");
    tm_printable_sentence(p->stream, copy.producer == p->node ? "copied after it: " : "copied for it: ", text, p->width);
  }
}

static void print_times(const page *p, const tm_node_explanation *one) {
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_quantity     start, end, total, wait;
  char            text[300];
  tm_plan_explanation_summarize(p->explained->explanation, &summary);
  snprintf(text, sizeof text, "from %s to %s of %s", tm_quantity_duration(one->start_ns, &start),
           tm_quantity_duration(one->end_ns, &end), tm_quantity_duration(summary.total_ns, &total));
  if (summary.overlaps != 0) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s%s; %s", one->wait_ns != 0 ? ", after " : "",
             one->wait_ns != 0 ? tm_quantity_duration(one->wait_ns, &wait) : "",
             one->wait_ns != 0 ? " of waiting for its device" : "",
             one->is_critical != 0 ? "the run would end later if it did" : "it may end later without the run doing so");
  }
  tm_printable_sentence(p->stream, "runs: ", text, p->width);
}

/* ---- candidates ---- */

static void describe_change(const page *p, uint32_t index, char *text, size_t capacity) {
  tm_plan_change  change = { .struct_size = sizeof change };
  tm_plan_summary summary = { .struct_size = sizeof summary };
  char            name[160], difference[64];
  text[0] = '\0';
  if (tm_plan_explanation_change(p->explained->explanation, index, &change) != TM_OK) return;
  tm_plan_explanation_summarize(p->explained->explanation, &summary);
  tm_change_describe(&change, name, sizeof name);
  tm_changed_total_describe(&summary, &change, difference, sizeof difference);
  snprintf(text, capacity, "with %s (and a run of the graph would take %s)", name, difference);
}

/* What a table has no room for. */
static void print_details(const page *p) {
  tm_node_candidate candidate;
  const row_texts   texts = { .explained = p->explained, .node = p->node };
  for (uint32_t i = 0; candidate_at(p->explained, p->node, i, &candidate); i++) {
    char head[200], promise[64] = "", measured[96], change[320], text[1800] = "";
    tm_way_describe(candidate.device_name, candidate.lowering, head, sizeof head - 2);
    strcat(head, ": ");
    if (has_way_around(&texts, &candidate)) snprintf(head, sizeof head, "%s as it is: ", candidate.device_name);
    if (candidate.level != TM_LEVEL_REFUSED)
      tm_numerics_describe(candidate.numerics, candidate.numerics_bound, candidate.growth, candidate.accumulator, promise,
                           sizeof promise);
    tm_measured_describe(candidate.correction, candidate.correction_spread, candidate.sample_count, measured, sizeof measured);
    describe_change(p, candidate.change, change, sizeof change);
    tm_part_append(text, sizeof text, "", promise);
    tm_part_append(text, sizeof text, "after ", candidate.lowering);
    tm_part_append(text, sizeof text, "", measured);
    tm_part_append(text, sizeof text, "", candidate.reason);
    tm_part_append(text, sizeof text, "would get it ", change);
    if (text[0] != '\0') tm_printable_sentence(p->stream, head, text, p->width);
  }
}

static void print_changes(const page *p) {
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_change  change = { .struct_size = sizeof change };
  tm_changed_node then = { .struct_size = sizeof then };
  char            name[160], way[160], difference[64], text[1200];
  bool            any = false;
  tm_plan_explanation_summarize(p->explained->explanation, &summary);
  for (uint32_t i = 0; tm_plan_explanation_change(p->explained->explanation, i, &change) == TM_OK; i++) {
    if (tm_plan_explanation_changed_node(p->explained->explanation, i, p->node, &then) != TM_OK || then.moves == 0) continue;
    if (then.is_farther != 0) continue;
    tm_change_describe(&change, name, sizeof name);
    tm_way_describe(then.device_name, then.lowering, way, sizeof way);
    tm_changed_total_describe(&summary, &change, difference, sizeof difference);
    snprintf(text, sizeof text, "%s moves it to %s, and a run of the graph takes %s", name, way, difference);
    tm_printable_sentence(p->stream, "would change it: ", text, p->width);
    any = true;
  }
  tm_changes_describe(p->explained, text, sizeof text);
  if (!any && text[0] != '\0') tm_printable_sentence(p->stream, "would change it: nothing that was tried: ", text, p->width);
}

void tm_explained_node_print(const tm_explained_graph *explained, uint32_t node, tm_invocation *invocation) {
  const page          p = { explained, invocation->output, invocation->terminal.width, node };
  const tm_table_look look = tm_explained_table_look(invocation);
  row_texts           texts = { .explained = explained, .node = node };
  const tm_rows       rows = { columns, COLUMN_COUNT, candidate_row, &texts, UINT64_MAX, NULL };
  tm_node_explanation one = { .struct_size = sizeof one };
  char                why[700];
  (void)tm_plan_explanation_node(explained->explanation, node, &one);
  print_node(&p, &one);
  tm_explained_absent_print(explained, p.stream, p.width);
  tm_output_char(p.stream, '\n');
  tm_rows_print_table(&rows, views, COLUMN_COUNT, &look, p.stream);
  tm_output_char(p.stream, '\n');
  print_times(&p, &one);
  print_copies(&p);
  tm_why_describe(explained, node, why, sizeof why);
  tm_printable_sentence(p.stream, "why there: ", why, p.width);
  print_changes(&p);
  print_details(&p);
}
