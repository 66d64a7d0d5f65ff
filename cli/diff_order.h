/* SPDX-License-Identifier: Apache-2.0 */
/* diff_order.h - which rows of a comparison are printed, and in which order. */
#ifndef TM_CLI_DIFF_ORDER_H
#define TM_CLI_DIFF_ORDER_H

#include "diff_view.h"
#include "row_selection.h"

/* So many that were removed, and as many that were added, are listed where nobody asks for more: a graph has hundreds of
   constants. */
#define TM_DIFF_MOST_UNPAIRED 20u
/* So many that are the same under another name or in another form are listed among the differences; where there are more, none. */
#define TM_DIFF_MOST_MOVED    20u

typedef struct tm_diff_order {
  uint64_t *rows;
  uint64_t  count;
  uint64_t  left_out_count;     /* rows that were cut off, by top or by the first of those numbers */
} tm_diff_order;

/*
 * Of the job's rows [0, row_count) those to be listed: all of them if `with_same`, else differences and a few that moved; no more
 * than the selection's top, and where neither that nor a column to sort by is given, only the largest of what has no counterpart.
 * Without a column to sort by the largest change comes first: pairs that differ from zeros or have NaN or infinities, then by
 * rel_l2, then those without figures, what was removed, what was added (of these the largest tensors first), and what is the same.
 * TM_ERROR_NO_MEMORY
 */
tm_status tm_diff_order_make(tm_diff_order *order, const tm_diff_view *view, uint64_t row_count, const tm_row_selection *selection,
                             bool with_same, tm_error *error);
void tm_diff_order_deinit(tm_diff_order *order);

#endif
