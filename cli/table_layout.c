/* SPDX-License-Identifier: Apache-2.0 */
#include "table_layout.h"

#include <stddef.h>

static uint32_t least_width(const tm_layout_column *column) {
  return column->least < column->wanted ? column->least : column->wanted;
}

/* Cells of a line if every column that is left had its least width. */
static uint64_t least_total(const tm_layout_column *columns, uint32_t count) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; i++)
    if (columns[i].width != 0) total += least_width(&columns[i]) + (total != 0 ? TM_TABLE_GAP : 0);
  return total;
}

static uint64_t total_width(const tm_layout_column *columns, uint32_t count) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; i++)
    if (columns[i].width != 0) total += columns[i].width + (total != 0 ? TM_TABLE_GAP : 0);
  return total;
}

static tm_layout_column *first_to_drop(tm_layout_column *columns, uint32_t count) {
  tm_layout_column *found = NULL;
  for (uint32_t i = 0; i < count; i++)
    if (columns[i].width != 0 && columns[i].drop_rank != 0 &&
        (found == NULL || columns[i].drop_rank >= found->drop_rank))
      found = &columns[i];
  return found;
}

static tm_layout_column *widest_shrinkable(tm_layout_column *columns, uint32_t count) {
  tm_layout_column *found = NULL;
  for (uint32_t i = 0; i < count; i++)
    if (columns[i].width > least_width(&columns[i]) && (found == NULL || columns[i].width > found->width))
      found = &columns[i];
  return found;
}

uint32_t tm_table_fit(tm_layout_column *columns, uint32_t count, uint32_t width) {
  uint32_t dropped = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (columns[i].wanted == 0) columns[i].wanted = 1;
    columns[i].width = columns[i].wanted;
  }
  if (width == 0) return 0;
  for (tm_layout_column *victim;
       least_total(columns, count) > width && (victim = first_to_drop(columns, count)) != NULL;) {
    victim->width = 0;
    dropped++;
  }
  for (tm_layout_column *wide;
       total_width(columns, count) > width && (wide = widest_shrinkable(columns, count)) != NULL;)
    wide->width--;
  return dropped;
}
