/* SPDX-License-Identifier: Apache-2.0 */
#include "format_totals.h"

#include <stdlib.h>
#include <string.h>

static const tm_column columns[] = {
  { "dtype", TM_COLUMN_TEXT, 0, "" }, { "tensors", TM_COLUMN_COUNT, 0, "" }, { "elements", TM_COLUMN_COUNT, 0, "" },
  { "bytes", TM_COLUMN_BYTES, 0, "" } };

static uint64_t add_saturated(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static tm_format_total *find_or_add(tm_format_totals *totals, const char *name) {
  for (uint32_t i = 0; i < totals->count; i++)
    if (strcmp(totals->items[i].name, name) == 0) return &totals->items[i];
  if (totals->count == TM_FORMAT_TOTALS_MAX) {
    totals->items[TM_FORMAT_TOTALS_MAX - 1].name = "others";
    return &totals->items[TM_FORMAT_TOTALS_MAX - 1];
  }
  totals->items[totals->count] = (tm_format_total){ .name = name };
  return &totals->items[totals->count++];
}

void tm_format_totals_add(tm_format_totals *totals, const char *name, uint64_t element_count, uint64_t bytes,
                          bool has_size) {
  tm_format_total *total = find_or_add(totals, name);
  total->tensor_count++;
  total->element_count = add_saturated(total->element_count, element_count);
  total->bytes = add_saturated(total->bytes, bytes);
  total->is_open = total->is_open || !has_size;
}

static int by_bytes(const void *left, const void *right) {
  const tm_format_total *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return strcmp(a->name, b->name);
}

void tm_format_totals_sort(tm_format_totals *totals) {
  qsort(totals->items, totals->count, sizeof totals->items[0], by_bytes);
}

static bool total_row(const void *source, uint64_t row, tm_cell *cells) {
  const tm_format_totals *totals = source;
  if (row >= totals->count) return false;
  const tm_format_total *total = &totals->items[row];
  cells[0] = tm_cell_text(total->name);
  cells[1] = tm_cell_count(total->tensor_count);
  cells[2] = tm_cell_count(total->element_count);
  cells[3] = total->is_open ? tm_cell_undefined(TM_COLUMN_BYTES) : tm_cell_bytes(total->bytes);
  return true;
}

tm_rows tm_format_totals_rows(const tm_format_totals *totals) {
  return (tm_rows){ columns, sizeof columns / sizeof columns[0], total_row, totals, totals->count, NULL };
}
