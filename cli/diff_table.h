/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_table.h - the rows of a comparison as a table for people: what is equal on both sides stands there once, what is not as
 * "f32 -> bf16".  The columns have the names and places of the job's, so that those can be chosen.
 */
#ifndef TM_CLI_DIFF_TABLE_H
#define TM_CLI_DIFF_TABLE_H

#include "diff_order.h"

void tm_diff_table_print(const tm_diff_view *view, const tm_diff_order *order, const tm_row_selection *selection,
                         tm_table_look look, tm_output_stream *stream);

#endif
