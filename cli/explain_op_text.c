/* SPDX-License-Identifier: Apache-2.0 */
/* One operation as text: every candidate with what it would cost, why it goes where it goes, and what would change that. */
#include <stdio.h>
#include <string.h>

#include "explain_op.h"
#include "explain_words.h"
#include "numerics_text.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"

/* Headings are short so that most of what a cost consists of fits into 80 cells.  What goes first is told below the table, too, or
   is a part of what stays; who, the verdict and the price always stay. */
static const tm_column columns[] = {
  { "device", TM_COLUMN_TEXT, 0, "" },  { "verdict", TM_COLUMN_TEXT, 0, "" }, { "level", TM_COLUMN_TEXT, 0, "" },
  { "regret", TM_COLUMN_TEXT, 0, "" },  { "price", TM_COLUMN_TEXT, 0, "" },   { "total", TM_COLUMN_TEXT, 0, "" },
  { "formula", TM_COLUMN_TEXT, 0, "" }, { "corr(n)", TM_COLUMN_TEXT, 0, "" }, { "lower", TM_COLUMN_TEXT, 0, "" },
  { "copies", TM_COLUMN_TEXT, 0, "" },  { "setup", TM_COLUMN_TEXT, 0, "" } };
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])
static const tm_column_view views[] = { { 0, 18, 0, false, NULL }, { 1, 0, 0, false, NULL }, { 2, 0, 8, false, NULL },
                                        { 3, 0, 1, false, NULL },  { 4, 0, 0, false, NULL }, { 5, 0, 2, false, NULL },
                                        { 6, 0, 6, false, NULL },  { 7, 0, 7, false, NULL }, { 8, 0, 5, false, NULL },
                                        { 9, 0, 4, false, NULL },  { 10, 0, 3, false, NULL } };

/* A table keeps no texts, so the rows' texts live here while one row is looked at. */
typedef struct row_texts {
  const tm_explained_op *explained;
  tm_quantity            quantities[7];
  char                   device[160];
  char                   level[32];
  char                   correction[48];
} row_texts;

bool tm_explained_candidate_at(const tm_explained_op *explained, uint32_t index, tm_candidate *out_candidate) {
  *out_candidate = (tm_candidate){ .struct_size = sizeof *out_candidate };
  return tm_explanation_candidate(explained->explanation, index, out_candidate) == TM_OK;
}

bool tm_explained_has_cost(const tm_candidate *candidate) { return candidate->regret_ns != TM_NEVER_NS; }

/* A refusal with a way around it: the way has a row of its own, and says more. */
static bool has_way_around(const tm_explained_op *explained, const tm_candidate *candidate) {
  tm_candidate other;
  if (candidate->level != TM_LEVEL_REFUSED || candidate->lowering[0] != '\0') return false;
  for (uint32_t i = 0; tm_explained_candidate_at(explained, i, &other); i++)
    if (other.device == candidate->device && other.lowering[0] != '\0') return true;
  return false;
}

/* The candidate of the table's `row`, which has none for a refusal with a way around it. */
static bool find_row(const tm_explained_op *explained, uint64_t row, tm_candidate *candidate) {
  for (uint32_t i = 0; tm_explained_candidate_at(explained, i, candidate); i++)
    if (!has_way_around(explained, candidate) && row-- == 0) return true;
  return false;
}

static tm_cell duration_cell(const tm_candidate *candidate, uint64_t duration_ns, tm_quantity *quantity) {
  if (!tm_explained_has_cost(candidate)) return tm_cell_undefined(TM_COLUMN_TEXT);
  return tm_cell_text(duration_ns == 0 ? "0" : tm_quantity_duration(duration_ns, quantity));
}

static bool candidate_row(const void *source, uint64_t row, tm_cell *cells) {
  static const uint8_t places[] = { 3, 4, 5, 6, 8, 9, 10 };
  row_texts           *texts = (row_texts *)(uintptr_t)source;
  tm_candidate         candidate;
  if (!find_row(texts->explained, row, &candidate)) return false;
  const uint64_t durations[] = { candidate.regret_ns, candidate.price_ns, candidate.total_ns, candidate.declared_ns,
                                 candidate.lowering_ns, candidate.copy_ns, candidate.setup_share_ns };
  tm_way_describe(candidate.device_name, candidate.lowering, texts->device, sizeof texts->device);
  snprintf(texts->level, sizeof texts->level, "%s %s", tm_level_name(candidate.level), tm_numerics_name(candidate.numerics));
  snprintf(texts->correction, sizeof texts->correction, "x%.3g(%llu)", candidate.correction,
           (unsigned long long)candidate.sample_count);
  cells[0] = tm_cell_text(texts->device);
  cells[1] = tm_cell_text(tm_verdict_name(candidate.verdict));
  cells[2] = candidate.level != TM_LEVEL_REFUSED ? tm_cell_text(texts->level) : tm_cell_undefined(TM_COLUMN_TEXT);
  for (uint32_t i = 0; i < sizeof places; i++)
    cells[places[i]] = duration_cell(&candidate, durations[i], &texts->quantities[i]);
  cells[7] = tm_explained_has_cost(&candidate) ? tm_cell_text(texts->correction) : tm_cell_undefined(TM_COLUMN_TEXT);
  return true;
}

static void append_operand(const tm_operand *operand, const char *before, char *text, size_t capacity) {
  char         layout[256];
  const size_t used = strlen(text);
  tm_operand_describe(operand, layout, sizeof layout);
  if (used < capacity)
    snprintf(text + used, capacity - used, "%s%s%s", before, layout, (operand->flags & TM_OPERAND_CONSTANT) != 0 ? " (constant)" : "");
}

/* "matmul f32 4x4, f32 4x4 -> f32 4x4  [transpose_a=1]", and what is computed. */
static void print_request(const tm_explained_op *explained, const tm_explanation_summary *summary, tm_output_stream *stream,
                          uint32_t width) {
  const tm_op_request *request = explained->request;
  char                 head[80], text[2000] = "", attributes[256], runs[48] = "";
  tm_quantity          a, b, c;
  snprintf(head, sizeof head, "%s ", request->op.name);
  for (uint32_t i = 0; i < request->input_count; i++) append_operand(&request->inputs[i], i > 0 ? ", " : "", text, sizeof text);
  for (uint32_t i = 0; i < request->op.output_count; i++)
    append_operand(&request->outputs[i], i > 0 ? ", " : " -> ", text, sizeof text);
  tm_op_attributes_print(&request->attributes, attributes, sizeof attributes);
  const size_t used = strlen(text);
  if (attributes[0] != '\0') snprintf(text + used, sizeof text - used, "  [%s]", attributes);
  tm_printable_sentence(stream, head, text, width);
  if (explained->repeats != 0)
    snprintf(runs, sizeof runs, "; for %u run%s", (unsigned)explained->repeats, explained->repeats == 1 ? "" : "s");
  snprintf(text, sizeof text, "%s operation%s, %s read, %s written; accepted: %s or better%s",
           tm_quantity_short_count(summary->flops, &a), summary->flops == 1 ? "" : "s", tm_quantity_bytes(summary->read_bytes, &b),
           tm_quantity_bytes(summary->written_bytes, &c), tm_numerics_name(summary->worst_numerics), runs);
  tm_printable_sentence(stream, "work: ", text, width);
}

/* ---- why there ---- */

static uint64_t run_ns(const tm_candidate *candidate) { return candidate->total_ns - candidate->copy_ns; }

/* Who would be done first if nothing were to be copied, and nothing paid once. */
static void find_fastest(const tm_explained_op *explained, const tm_candidate *chosen, tm_candidate *out_fastest) {
  tm_candidate candidate;
  *out_fastest = *chosen;
  for (uint32_t i = 0; tm_explained_candidate_at(explained, i, &candidate); i++)
    if (tm_explained_has_cost(&candidate) && run_ns(&candidate) < run_ns(out_fastest)) *out_fastest = candidate;
}

static bool is_same(const tm_candidate *a, const tm_candidate *b) {
  return a->device == b->device && strcmp(a->lowering, b->lowering) == 0;
}

/* "fast:0 would run it in 10.5 us (12.3 us less), but with 13.3 us of copies and 2 s of set-up it takes 2 s more" */
static void describe_faster(const tm_explained_op *explained, const tm_candidate *chosen, const tm_candidate *fastest, char *out,
                            size_t capacity) {
  tm_quantity run, quantity;
  char        way[160], less[64], copies[64] = "", setup[80] = "", more[64];
  tm_way_describe(fastest->device_name, fastest->lowering, way, sizeof way);
  tm_difference_describe(run_ns(chosen), run_ns(fastest), less, sizeof less);
  tm_difference_describe(chosen->price_ns, fastest->price_ns, more, sizeof more);
  if (fastest->copy_ns != 0) snprintf(copies, sizeof copies, "%s of copies", tm_quantity_duration(fastest->copy_ns, &quantity));
  if (fastest->setup_share_ns != 0)
    snprintf(setup, sizeof setup, "%s of set-up%s", tm_quantity_duration(fastest->setup_share_ns, &quantity),
             explained->repeats != 0 ? " a run" : "");
  const char *and = copies[0] != '\0' && setup[0] != '\0' ? " and " : "";
  snprintf(out, capacity, "%s would run it in %s (%s), but with %s%s%s it takes %s", way,
           tm_quantity_duration(run_ns(fastest), &run), less, copies, and, setup, more);
}

static void print_why(const tm_explained_op *explained, tm_output_stream *stream, uint32_t width) {
  tm_candidate chosen, fastest, next;
  tm_quantity  run;
  char         text[700], way[160], more[64];
  if (!tm_explained_candidate_at(explained, 0, &chosen) || chosen.verdict != TM_VERDICT_CHOSEN) return;
  find_fastest(explained, &chosen, &fastest);
  const bool has_next = tm_explained_candidate_at(explained, 1, &next) && tm_explained_has_cost(&next);
  if (!has_next) snprintf(text, sizeof text, "nobody else can run it as asked");
  else if (is_same(&fastest, &chosen))
    snprintf(text, sizeof text, "it runs fastest there, in %s%s", tm_quantity_duration(run_ns(&chosen), &run),
             chosen.copy_ns != 0 ? " without the copies" : "");
  else describe_faster(explained, &chosen, &fastest, text, sizeof text);
  const size_t used = strlen(text);
  if (has_next && !is_same(&fastest, &next)) {
    tm_way_describe(next.device_name, next.lowering, way, sizeof way);
    tm_difference_describe(chosen.price_ns, next.price_ns, more, sizeof more);
    snprintf(text + used, sizeof text - used, "; on %s, the next best, it takes %s", way, more);
  }
  tm_printable_sentence(stream, "why there: ", text, width);
}

/* ---- what would change it ---- */

/* "saving 883 us", "for 1.2 s more": another price than that of the chosen one; "" without one. */
static void describe_price(const tm_explained_op *explained, uint64_t price_ns, char *out, size_t capacity) {
  tm_candidate chosen;
  tm_quantity  quantity;
  out[0] = '\0';
  if (!tm_explained_candidate_at(explained, 0, &chosen) || chosen.verdict != TM_VERDICT_CHOSEN) return;
  const bool     is_less = price_ns < chosen.price_ns;
  const uint64_t ns = is_less ? chosen.price_ns - price_ns : price_ns - chosen.price_ns;
  snprintf(out, capacity, is_less ? "saving %s" : "for %s more", tm_quantity_duration(ns, &quantity));
}

void tm_flip_describe(const tm_explained_op *explained, char *out, size_t capacity) {
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  char                   price[64] = "";
  tm_explanation_summarize(explained->explanation, &summary);
  if (summary.flip[0] != '\0') describe_price(explained, summary.flip_price_ns, price, sizeof price);
  snprintf(out, capacity, "%s%s%s", summary.flip, price[0] != '\0' ? ", " : "", price);
}

/* "--accept N1 (saving 883 us)"; "" of one that no class would choose. */
static void describe_class(const tm_explained_op *explained, const tm_candidate *candidate, char *out, size_t capacity) {
  char price[64];
  out[0] = '\0';
  if (candidate->flip_numerics == TM_NUMERICS_DEFAULT || has_way_around(explained, candidate)) return;
  describe_price(explained, candidate->flip_price_ns, price, sizeof price);
  snprintf(out, capacity, price[0] != '\0' ? "--accept %s (%s)" : "--accept %s", tm_numerics_name(candidate->flip_numerics), price);
}

/* "--repeats 41 or more"; "" of the one that is chosen, and of one that no number of runs would choose. */
static void describe_repeats(const tm_candidate *candidate, char *out, size_t capacity) {
  const unsigned from = candidate->repeats_from, to = candidate->repeats_to;
  out[0] = '\0';
  if (from == 0 || candidate->verdict == TM_VERDICT_CHOSEN) return;
  if (to == UINT32_MAX) snprintf(out, capacity, "--repeats %u or more", from);
  else if (from == to) snprintf(out, capacity, "--repeats %u", from);
  else if (from == 1) snprintf(out, capacity, "--repeats %u or fewer", to);
  else snprintf(out, capacity, "--repeats %u to %u", from, to);
}

static void print_changes(const tm_explained_op *explained, tm_output_stream *stream, uint32_t width) {
  tm_candidate candidate;
  char         text[1200], repeats[64], way[160], part[256];
  tm_flip_describe(explained, text, sizeof text);
  for (uint32_t i = 0; tm_explained_candidate_at(explained, i, &candidate); i++) {
    describe_repeats(&candidate, repeats, sizeof repeats);
    tm_way_describe(candidate.device_name, candidate.lowering, way, sizeof way);
    snprintf(part, sizeof part, "%s would choose %s", repeats, way);
    if (repeats[0] != '\0') tm_part_append(text, sizeof text, "", part);
  }
  const bool is_placed = tm_explained_candidate_at(explained, 0, &candidate) && candidate.verdict == TM_VERDICT_CHOSEN;
  if (text[0] == '\0' && is_placed) snprintf(text, sizeof text, "neither another --accept nor --repeats");
  if (text[0] != '\0') tm_printable_sentence(stream, "what would change it: ", text, width);
}

/* ---- each candidate ---- */

/* "2 s to be paid once, 3 ms of it earned", or a run's part of it; and what is still said where no number of runs would do. */
static void describe_setup(const tm_explained_op *explained, const tm_candidate *candidate, char *text, size_t capacity) {
  tm_quantity setup, part;
  text[0] = '\0';
  if (!tm_explained_has_cost(candidate) || candidate->setup_ns == 0) return;
  const uint64_t part_ns = explained->repeats != 0 ? candidate->setup_share_ns : candidate->earned_ns;
  const char *part_text = part_ns != 0 ? tm_quantity_duration(part_ns, &part) : explained->repeats != 0 ? "less than 1 ns" : "none";
  snprintf(text, capacity, "%s to be paid once, %s %s%s", tm_quantity_duration(candidate->setup_ns, &setup), part_text,
           explained->repeats != 0 ? "a run" : "of it earned",
           candidate->repeats_from == 0 ? ", and no number of runs makes up for it" : "");
}

/* What a table has no room for. */
static void print_details(const tm_explained_op *explained, tm_output_stream *stream, uint32_t width) {
  tm_candidate candidate;
  for (uint32_t i = 0; tm_explained_candidate_at(explained, i, &candidate); i++) {
    char way[160], head[180], promise[64] = "", measured[96], setup[160], accept[96], repeats[64], text[1800] = "";
    tm_way_describe(candidate.device_name, candidate.lowering, way, sizeof way);
    snprintf(head, sizeof head, has_way_around(explained, &candidate) ? "%s as it is: " : "%s: ", way);
    if (candidate.level != TM_LEVEL_REFUSED)
      tm_numerics_describe(candidate.numerics, candidate.numerics_bound, candidate.growth, candidate.accumulator, promise,
                           sizeof promise);
    tm_measured_describe(candidate.correction, candidate.correction_spread, candidate.sample_count, measured, sizeof measured);
    describe_setup(explained, &candidate, setup, sizeof setup);
    describe_class(explained, &candidate, accept, sizeof accept);
    describe_repeats(&candidate, repeats, sizeof repeats);
    tm_part_append(text, sizeof text, "", promise);
    tm_part_append(text, sizeof text, "after ", candidate.lowering);
    tm_part_append(text, sizeof text, "", tm_explained_has_cost(&candidate) ? measured : "");
    tm_part_append(text, sizeof text, "", setup);
    tm_part_append(text, sizeof text, "", candidate.reason);
    tm_part_append(text, sizeof text, "would get it with ", accept);
    tm_part_append(text, sizeof text, accept[0] != '\0' ? "or with " : "would get it with ", repeats);
    tm_printable_sentence(stream, head, text, width);
  }
}

void tm_explained_op_print(const tm_explained_op *explained, tm_invocation *invocation) {
  tm_output_stream      *stream = invocation->output;
  const uint32_t         width = invocation->terminal.width;
  const tm_table_look    look = tm_explained_table_look(invocation);
  const tm_elsewhere_notes *absent = explained->absent;
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  row_texts              texts = { .explained = explained };
  const tm_rows          rows = { columns, COLUMN_COUNT, candidate_row, &texts, UINT64_MAX, NULL };
  char                   margin[64];
  tm_explanation_summarize(explained->explanation, &summary);
  print_request(explained, &summary, stream, width);
  if (explained->request->note[0] != '\0') tm_printable_sentence(stream, "note: ", explained->request->note, width);
  for (uint32_t i = 0; i < absent->count; i++) tm_printable_sentence(stream, "note: ", absent->texts[i], width);
  tm_output_char(stream, '\n');
  tm_rows_print_table(&rows, views, COLUMN_COUNT, &look, stream);
  tm_output_char(stream, '\n');
  print_why(explained, stream, width);
  print_changes(explained, stream, width);
  if (summary.margin > 0) {
    snprintf(margin, sizeof margin, "the next price is %.3g times the least", summary.margin);
    tm_printable_sentence(stream, "margin: ", margin, width);
  }
  print_details(explained, stream, width);
}
