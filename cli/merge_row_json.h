/* SPDX-License-Identifier: Apache-2.0 */
/* merge_row_json.h - a row of a merge, of its plan or of its job, for programs: what it is made of is numbers and names there. */
#ifndef TM_CLI_MERGE_ROW_JSON_H
#define TM_CLI_MERGE_ROW_JSON_H

#include "row_printer.h"

/* One object on one line.  Rows of the job are those of the plan, as far as they go.  In the place of the columns models and
   weights are the arrays models, weights and, where the method has them, densities, scale and angle. */
void tm_merge_row_print_json(const tm_merge_plan *plan, uint64_t row, const tm_column *columns, uint32_t count,
                             const tm_cell *cells, tm_json_writer *json);

#endif
