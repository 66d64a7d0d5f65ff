/* SPDX-License-Identifier: Apache-2.0 */
/* merge_plan_text.h - a plan of a merge, for people and for programs, before anything is done. */
#ifndef TM_CLI_MERGE_PLAN_TEXT_H
#define TM_CLI_MERGE_PLAN_TEXT_H

#include "json_writer.h"
#include "merge_request.h"
#include "row_printer.h"

/* What does not match and what is done about it, sizes, what is written; then what stands in the way.
   Of tensors of which the same is said only the first is named, unless `names_all`. */
void tm_merge_plan_print(const tm_merge_plan *plan, const tm_merge_request *request, bool names_all, tm_table_look look,
                         tm_output_stream *stream);
/* The member "plan". */
void tm_merge_plan_print_json(const tm_merge_plan *plan, tm_json_writer *json);

/* How many files are there that the merge would replace or remove. */
uint64_t tm_merge_plan_loss_count(const tm_merge_plan *plan);

#endif
