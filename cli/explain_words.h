/* SPDX-License-Identifier: Apache-2.0 */
/* explain_words.h - an explanation of a graph in words: reasons, and requirements as the options that ask for them. */
#ifndef TM_CLI_EXPLAIN_WORDS_H
#define TM_CLI_EXPLAIN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "elsewhere_notes.h"
#include "output_stream.h"
#include "row_printer.h"
#include "tensormorph/tensormorph.h"

/* An explanation and the graph that it is of. */
typedef struct tm_explained_graph {
  const char                *path;
  tm_graph                  *graph;
  const tm_plan_explanation *explanation;
  const tm_elsewhere_notes  *absent;    /* who was asked for and is not here */
} tm_explained_graph;

/* How much longer, or less long, a run would be with a candidate: where devices work at the same time with this node alone moved to
   it, as sums tell nothing of that; else with all others where that is best then. */
typedef struct tm_regret {
  bool     is_known, is_less;
  uint64_t ns;
} tm_regret;
tm_regret tm_candidate_regret(const tm_explained_graph *explained, const tm_node_candidate *candidate);
/* "1.20 ms", "-1.20 ms", "0": for a column. */
void tm_regret_describe(const tm_regret *regret, char *out, size_t capacity);

/* "fastest", "copies", ...: for a column. */
const char *tm_why_name(uint32_t why);
/* A sentence that compares what was chosen with what would be faster by itself. */
void tm_why_describe(const tm_explained_graph *explained, uint32_t node, char *out, size_t capacity);

/* --wide: as wide as it is. */
tm_table_look tm_explained_table_look(const tm_invocation *invocation);

/* "note: " lines of `absent`. */
void tm_explained_absent_print(const tm_explained_graph *explained, tm_output_stream *stream, size_t width);

/* "--accept N3", "--repeats 1000", "no --max-memory", ... */
void tm_change_describe(const tm_plan_change *change, char *out, size_t capacity);
/* "1.20 ms less", "300 us more", "as long". */
void tm_difference_describe(uint64_t now_ns, uint64_t then_ns, char *out, size_t capacity);
/* The same of a run after a change; "about" where a limit of memory stays, which a plan of its own may keep to in another way. */
void tm_changed_total_describe(const tm_plan_summary *summary, const tm_plan_change *change, char *out, size_t capacity);
/* Everything that was tried: "--accept N0 to N3, --repeats 1 to 1000000". */
void tm_changes_describe(const tm_explained_graph *explained, char *out, size_t capacity);

/* A candidate that would have the node if memory were not limited: it is that which keeps it away. */
bool tm_candidate_lacks_room(const tm_explained_graph *explained, const tm_node_candidate *candidate);
/* "chosen", "slower", "no room", ... */
const char *tm_candidate_verdict(const tm_explained_graph *explained, const tm_node_candidate *candidate);

/* "x3.13 within x1.02 of its formula in 58 runs": the factor that was learned, and its spread; "" if nothing was measured. */
void tm_measured_describe(double correction, double spread, uint64_t samples, char *out, size_t capacity);
/* Adds "; ", head and part behind what is there, without "; " where that is nothing; nothing for "". */
void tm_part_append(char *text, size_t capacity, const char *head, const char *part);

/* "4 'fc1'", or its number alone. */
void tm_node_describe(const tm_explained_graph *explained, uint32_t node, char *out, size_t capacity);
/* "constant 'w'", "the result of 4 'fc1'". */
void tm_value_describe(const tm_explained_graph *explained, uint32_t value, char *out, size_t capacity);
/* "sim:0", "sim:0 (changed)". */
void tm_way_describe(const char *device, const char *lowering, char *out, size_t capacity);
/* "host", or the device whose memory it is. */
const char *tm_memory_name(const tm_explained_graph *explained, uint32_t memory);

#endif
