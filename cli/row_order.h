/* SPDX-License-Identifier: Apache-2.0 */
/* row_order.h - the order in which sorted rows are printed. */
#ifndef TM_CLI_ROW_ORDER_H
#define TM_CLI_ROW_ORDER_H

#include "row_printer.h"

/*
 * Row numbers sorted by one column: numbers, sizes and shapes (by element count) from large to small, texts from a to
 * z; `reversed` turns that round.  Rows that are equal keep their order; undefined cells come last either way.  The
 * caller frees the array.  NULL: no memory.
 */
uint64_t *tm_row_order_create(const tm_rows *rows, uint32_t column, bool reversed);

#endif
