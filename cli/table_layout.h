/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_layout.h - how wide each column of a table becomes when the lines may have so many cells and no more.  First
 * the widest shrinkable columns give way, down to their least; if that is not enough, columns are left out.
 */
#ifndef TM_CLI_TABLE_LAYOUT_H
#define TM_CLI_TABLE_LAYOUT_H

#include <stdint.h>

#define TM_TABLE_GAP 2          /* cells between columns */

typedef struct tm_layout_column {
  uint32_t wanted;              /* cells that its widest cell and its heading take */
  uint32_t least;               /* it may shrink to this; at least `wanted` means it cannot */
  uint32_t drop_rank;           /* 0: always there; else the highest is left out first */
  uint32_t width;               /* result; 0: left out */
} tm_layout_column;

/* width 0: no limit.  Returns how many columns were left out. */
uint32_t tm_table_fit(tm_layout_column *columns, uint32_t count, uint32_t width);

#endif
