/* SPDX-License-Identifier: Apache-2.0 */
/* explain_op.h - explain OP: where one operation would run, as text and as JSON. */
#ifndef TM_CLI_EXPLAIN_OP_H
#define TM_CLI_EXPLAIN_OP_H

#include "command.h"
#include "elsewhere_notes.h"
#include "json_writer.h"
#include "op_request.h"

/* An explanation and what it is of. */
typedef struct tm_explained_op {
  const tm_op_request      *request;
  const tm_explanation     *explanation;
  const tm_elsewhere_notes *absent;     /* who was asked for and is not here */
  uint32_t                  repeats;    /* that were declared; 0: none */
} tm_explained_op;

/* The candidate of that index, cheapest first; false past the last. */
bool tm_explained_candidate_at(const tm_explained_op *explained, uint32_t index, tm_candidate *out_candidate);
/* One that cannot run it has none. */
bool tm_explained_has_cost(const tm_candidate *candidate);
/* "accepting N1 as well would choose fast:0, saving 883 us"; "" if no other class changes anything. */
void tm_flip_describe(const tm_explained_op *explained, char *out, size_t capacity);

void tm_explained_op_print(const tm_explained_op *explained, tm_invocation *invocation);
void tm_explained_op_print_json(const tm_explained_op *explained, tm_output_stream *stream);

#endif
