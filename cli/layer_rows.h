/* SPDX-License-Identifier: Apache-2.0 */
/* layer_rows.h - groups of a comparison as typed rows, for tables, CSV and JSON. */
#ifndef TM_CLI_LAYER_ROWS_H
#define TM_CLI_LAYER_ROWS_H

#include "layer_groups.h"
#include "row_selection.h"

typedef struct tm_layer_rows {
  const tm_layer_groups *groups;
  tm_layer_key key;             /* TM_BY_TENSOR: rows are cells of the grid */
  bool         is_table;        /* shares as percentages */
  size_t      *kept;            /* indices of layers, kinds or cells */
  size_t       count;
} tm_layer_rows;

/* The columns that rows by this key have. */
const tm_column *tm_layer_columns(tm_layer_key key, bool is_table, uint32_t *out_count);

/* All groups, or only those in which something differs.   TM_ERROR_NO_MEMORY */
tm_status tm_layer_rows_init(tm_layer_rows *rows, const tm_layer_groups *groups, tm_layer_key key, bool is_table, bool with_same,
                             tm_error *error);
void      tm_layer_rows_deinit(tm_layer_rows *rows);
tm_rows   tm_layer_rows_all(const tm_layer_rows *rows);

bool tm_layer_figures_differ(const tm_layer_figures *figures);
void tm_layer_rows_print(const tm_layer_rows *rows, const tm_row_selection *selection, tm_table_look look,
                         tm_output_stream *stream);

#endif
