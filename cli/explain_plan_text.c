/* SPDX-License-Identifier: Apache-2.0 */
/* The whole plan as text: a line a node, then what a run takes, what is copied, what was rejected, and what would change it. */
#include <stdio.h>
#include <string.h>

#include "explain_graph.h"
#include "numerics_text.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"

#define MOST_CRITICAL 12u       /* steps that are named */

/* ---- a line a node ---- */

static const tm_column columns[] = {
  { "node", TM_COLUMN_TEXT, 0, "" },     { "name", TM_COLUMN_TEXT, 0, "" },   { "op", TM_COLUMN_TEXT, 0, "" },
  { "device", TM_COLUMN_TEXT, 0, "" },    { "time", TM_COLUMN_TEXT, 0, "" },   { "why", TM_COLUMN_TEXT, 0, "" },
  { "next best", TM_COLUMN_TEXT, 0, "" }, { "regret", TM_COLUMN_TEXT, 0, "" }, { "moves with", TM_COLUMN_TEXT, 0, "" } };
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])
/* A node's number, its device and its time always stay; what would move it is said below the table, too. */
static const tm_column_view views[] = { { 0, 0, 0, false, NULL },  { 1, 8, 4, false, NULL }, { 2, 0, 1, false, NULL },
                                        { 3, 10, 0, false, NULL }, { 4, 0, 0, false, NULL }, { 5, 0, 2, false, NULL },
                                        { 6, 10, 5, false, NULL }, { 7, 0, 3, false, NULL }, { 8, 0, 6, false, NULL } };

typedef struct row_texts {
  const tm_explained_graph *explained;
  tm_quantity time;
  char        least[48];
  char        regret[56];
  char        number[16];
  char        name[300];
  char        device[160];
  char        next[160];
  char        why[32];
  char        change[160];
} row_texts;

static void fill_next(row_texts *texts, const tm_node_explanation *one, uint32_t node, tm_cell *cells) {
  tm_node_candidate next = { .struct_size = sizeof next };
  cells[6] = cells[7] = tm_cell_undefined(TM_COLUMN_TEXT);
  if (one->runner_up == TM_NO_CANDIDATE) return;
  (void)tm_plan_explanation_candidate(texts->explained->explanation, node, one->runner_up, &next);
  tm_way_describe(next.device_name, next.lowering, texts->next, sizeof texts->next);
  cells[6] = tm_cell_text(texts->next);
  const tm_regret regret = tm_candidate_regret(texts->explained, &next);
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_explanation_summarize(texts->explained->explanation, &summary);
  if (!regret.is_known) return;
  tm_regret_describe(&regret, texts->least, sizeof texts->least);
  snprintf(texts->regret, sizeof texts->regret, "%s%s", next.is_bound != 0 && summary.overlaps == 0 ? ">=" : "", texts->least);
  cells[7] = tm_cell_text(texts->regret);
}

static bool node_row(const void *source, uint64_t row, tm_cell *cells) {
  row_texts          *texts = (row_texts *)(uintptr_t)source;
  tm_node_explanation one = { .struct_size = sizeof one };
  tm_node_description node = { .struct_size = sizeof node };
  tm_plan_change      change = { .struct_size = sizeof change };
  if (tm_plan_explanation_node(texts->explained->explanation, (uint32_t)row, &one) != TM_OK) return false;
  if (tm_graph_node_describe(texts->explained->graph, (uint32_t)row, &node) != TM_OK) return false;
  tm_printable_escape(node.name, strlen(node.name), texts->name, sizeof texts->name);
  tm_way_describe(one.device_name, one.lowering, texts->device, sizeof texts->device);
  snprintf(texts->number, sizeof texts->number, "%u", (uint32_t)row);   /* as --node takes it */
  cells[0] = tm_cell_text(texts->number);
  cells[1] = texts->name[0] != '\0' ? tm_cell_text(texts->name) : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[2] = tm_cell_text(node.op_name);
  cells[3] = tm_cell_text(texts->device);
  cells[4] = tm_cell_text(tm_quantity_duration(one.predicted_ns, &texts->time));
  cells[5] = tm_cell_text(tm_why_name(one.why));
  fill_next(texts, &one, (uint32_t)row, cells);
  cells[8] = tm_cell_undefined(TM_COLUMN_TEXT);
  if (tm_plan_explanation_change(texts->explained->explanation, one.change, &change) != TM_OK) return true;
  tm_change_describe(&change, texts->change, sizeof texts->change);
  cells[8] = tm_cell_text(texts->change);
  return true;
}

/* ---- what a run takes ---- */

typedef struct page {
  const tm_explained_graph *explained;
  tm_output_stream         *stream;
  uint32_t                  width;
} page;

/* ", 2 constants"; nothing where there is none. */
static void append_count(char *text, size_t capacity, uint32_t count, const char *noun) {
  const size_t used = strlen(text);
  if (count != 0) snprintf(text + used, capacity - used, ", %u %s%s", count, noun, count == 1 ? "" : "s");
}

static void print_graph(const page *p, const tm_plan_summary *summary) {
  const bool           is_usual = summary->worst_numerics == TM_NUMERICS_DEFAULT;
  tm_graph_description graph = { .struct_size = sizeof graph };
  tm_quantity          repeats, limit;
  char                 text[700];
  tm_graph_describe(p->explained->graph, &graph);
  snprintf(text, sizeof text, "%u node%s", graph.node_count, graph.node_count == 1 ? "" : "s");
  append_count(text, sizeof text, graph.input_count, "input");
  append_count(text, sizeof text, graph.constant_count, "constant");
  append_count(text, sizeof text, graph.state_count, "state");
  append_count(text, sizeof text, graph.output_count, "output");
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, "; accepted: %s%s; for %s runs",
           is_usual ? "what is usual for each operation" : tm_numerics_name(summary->worst_numerics),
           is_usual ? "" : " or better", tm_quantity_count(summary->repeats, &repeats));
  used = strlen(text);
  if (summary->max_memory_bytes != 0)
    snprintf(text + used, sizeof text - used, "; at most %s a memory", tm_quantity_bytes(summary->max_memory_bytes, &limit));
  tm_printable_sentence(p->stream, "graph: ", text, p->width);
}

/* How good the plan is, as far as that is proven. */
static void describe_bound(const tm_plan_summary *summary, char *text, size_t capacity) {
  tm_quantity bound;
  if (summary->bound_ns == 0 || summary->bound_ns > summary->total_ns) text[0] = '\0';
  else if (summary->bound_ns == summary->total_ns) snprintf(text, capacity, "; no placement takes less");
  else
    snprintf(text, capacity, "; no placement takes less than %s, so at most %.1f %% of it could be saved",
             tm_quantity_duration(summary->bound_ns, &bound),
             100.0 * (double)(summary->total_ns - summary->bound_ns) / (double)summary->total_ns);
}

static void print_time(const page *p, const tm_plan_summary *summary) {
  tm_quantity total, sum, nodes, copies;
  char        bound[120], text[600];
  describe_bound(summary, bound, sizeof bound);
  const char *sum_text = tm_quantity_duration(summary->sum_ns, &sum), *node_text = tm_quantity_duration(summary->node_ns, &nodes);
  const char *copy_text = tm_quantity_duration(summary->copy_ns, &copies);
  if (summary->overlaps != 0)
    snprintf(text, sizeof text, "%s, as devices work at the same time; one after the other %s = %s of nodes + %s of copies%s",
             tm_quantity_duration(summary->total_ns, &total), sum_text, node_text, copy_text, bound);
  else
    snprintf(text, sizeof text, "%s = %s of nodes + %s of copies%s", sum_text, node_text, copy_text, bound);
  tm_printable_sentence(p->stream, "a run takes: ", text, p->width);
}

static void print_links(const page *p) {
  tm_plan_link link = { .struct_size = sizeof link };
  for (uint32_t i = 0; tm_plan_explanation_link(p->explained->explanation, i, &link) == TM_OK; i++) {
    tm_quantity bytes, time;
    char        text[300];
    snprintf(text, sizeof text, "%s to %s: %u %s, %s, %s", tm_memory_name(p->explained, link.from),
             tm_memory_name(p->explained, link.to), link.copy_count, link.copy_count == 1 ? "value" : "values",
             tm_quantity_bytes(link.bytes, &bytes), tm_quantity_duration(link.ns, &time));
    tm_printable_sentence(p->stream, "copied from ", text, p->width);
  }
}

static void print_memories(const page *p) {
  tm_explained_memory memory = { .struct_size = sizeof memory };
  char                text[1200];
  size_t              used = 0;
  for (uint32_t i = 0; tm_plan_explanation_memory(p->explained->explanation, i, &memory) == TM_OK && used < sizeof text; i++) {
    tm_quantity peak, worth;
    char        price[80] = "";
    if (memory.ns_per_mib != 0)
      snprintf(price, sizeof price, " (another MiB would save about %s)", tm_quantity_duration(memory.ns_per_mib, &worth));
    if (memory.peak_bytes == 0 && i != 0) continue;
    const int length = snprintf(text + used, sizeof text - used, "%s%s %s%s", used == 0 ? "" : ", ", memory.name,
                                tm_quantity_bytes(memory.peak_bytes, &peak), price);
    used += length < 0 ? 0 : (size_t)length;
  }
  tm_printable_sentence(p->stream, "memory at the most: ", text, p->width);
}

static void print_critical(const page *p, const tm_plan_summary *summary) {
  tm_critical_step step = { .struct_size = sizeof step };
  tm_plan_copy     copy = { .struct_size = sizeof copy };
  char             text[2000] = "";
  size_t           used = 0;
  uint32_t         count = 0;
  if (summary->overlaps == 0) {
    tm_printable_sentence(p->stream, "critical path: ", "everything, as nothing overlaps", p->width);
    return;
  }
  for (; tm_plan_explanation_critical(p->explained->explanation, count, &step) == TM_OK; count++) {
    char one[300];
    if (count >= MOST_CRITICAL) continue;
    tm_node_describe(p->explained, step.node, one, sizeof one);
    if (step.node == TM_NO_NODE && tm_plan_explanation_copy(p->explained->explanation, step.copy, &copy) == TM_OK) {
      char value[256] = "";
      tm_value_describe(p->explained, copy.value, value, sizeof value);
      snprintf(one, sizeof one, "%s to %.40s", value, tm_memory_name(p->explained, copy.to));
    }
    const int length = snprintf(text + used, sizeof text - used, "%s%s", used == 0 ? "" : ", ", one);
    used += length < 0 || used + (size_t)length >= sizeof text ? 0 : (size_t)length;
  }
  if (count > MOST_CRITICAL) snprintf(text + used, sizeof text - used, " and %u more", count - MOST_CRITICAL);
  if (count != 0) tm_printable_sentence(p->stream, "critical path: ", text, p->width);
}

/* ---- other plans ---- */

static const char *plan_name(const tm_rejected_plan *plan, char *text, size_t capacity) {
  if (strcmp(plan->name, "single-device") == 0) snprintf(text, capacity, "everything that %s can run on it", plan->device_name);
  else if (strcmp(plan->name, "cheapest-sum") == 0) snprintf(text, capacity, "the cheapest sum");
  else snprintf(text, capacity, "%s", plan->name);
  return text;
}

static void print_rejected(const page *p) {
  tm_rejected_plan plan = { .struct_size = sizeof plan };
  char             text[2000] = "";
  size_t           used = 0;
  for (uint32_t i = 0; tm_plan_explanation_rejected(p->explained->explanation, i, &plan) == TM_OK && used < sizeof text; i++) {
    tm_quantity time;
    char        name[160];
    const int length =
        snprintf(text + used, sizeof text - used, "%s%s %s%s", used == 0 ? "" : ", ", plan_name(&plan, name, sizeof name),
                 tm_quantity_duration(plan.total_ns, &time), plan.excess_bytes != 0 ? " (too much memory)" : "");
    used += length < 0 ? 0 : (size_t)length;
  }
  if (used != 0) tm_printable_sentence(p->stream, "rejected: ", text, p->width);
}

/* Another number of runs that moves as many nodes as the one before. */
static bool says_nothing_new(const tm_plan_change *change, const tm_plan_change *last) {
  return change->kind == TM_CHANGE_REPEATS && last->kind == TM_CHANGE_REPEATS && change->moved_count == last->moved_count;
}

static void print_changes(const page *p, const tm_plan_summary *summary) {
  tm_plan_change change = { .struct_size = sizeof change };
  tm_plan_change last = { .kind = 0 };
  char           all[1000];
  bool           any = false;
  for (uint32_t i = 0; tm_plan_explanation_change(p->explained->explanation, i, &change) == TM_OK; i++) {
    char name[160], difference[64], text[400];
    if (change.is_possible == 0 || change.moved_count == 0 || says_nothing_new(&change, &last)) continue;
    last = change;
    tm_change_describe(&change, name, sizeof name);
    tm_changed_total_describe(summary, &change, difference, sizeof difference);
    snprintf(text, sizeof text, "%s: %u %s, and a run takes %s", name, change.moved_count,
             change.moved_count == 1 ? "node moves" : "nodes move", difference);
    tm_printable_sentence(p->stream, "would change it: ", text, p->width);
    any = true;
  }
  tm_changes_describe(p->explained, all, sizeof all);
  if (!any && all[0] != '\0') tm_printable_sentence(p->stream, "nothing would change it: ", all, p->width);
}

void tm_explained_graph_print(const tm_explained_graph *explained, tm_invocation *invocation) {
  const page          p = { explained, invocation->output, invocation->terminal.width };
  const tm_table_look look = tm_explained_table_look(invocation);
  row_texts           texts = { .explained = explained };
  const tm_rows       rows = { columns, COLUMN_COUNT, node_row, &texts, UINT64_MAX, NULL };
  tm_plan_summary     summary = { .struct_size = sizeof summary };
  tm_plan_explanation_summarize(explained->explanation, &summary);
  print_graph(&p, &summary);
  tm_explained_absent_print(explained, p.stream, p.width);
  tm_output_char(p.stream, '\n');
  tm_rows_print_table(&rows, views, COLUMN_COUNT, &look, p.stream);
  tm_output_char(p.stream, '\n');
  print_time(&p, &summary);
  print_links(&p);
  print_memories(&p);
  print_critical(&p, &summary);
  print_rejected(&p);
  print_changes(&p, &summary);
}
