/* SPDX-License-Identifier: Apache-2.0 */
#include "row_order.h"

#include <stdlib.h>
#include <string.h>

/* qsort's comparison gets no context, so every key knows its direction. */
typedef struct sort_key {
  uint64_t row;
  tm_cell  cell;
  int      direction;           /* 1: small first */
} sort_key;

static double element_count(const tm_cell *cell) {
  double count = 1;
  for (uint64_t i = 0; i < cell->count; i++) count *= (double)cell->shape[i];
  return count;
}

static int compare_values(const tm_cell *a, const tm_cell *b) {
  if (a->type == TM_COLUMN_TEXT) {
    const size_t shorter = (size_t)(a->count < b->count ? a->count : b->count);
    const int    order = shorter > 0 ? memcmp(a->text, b->text, shorter) : 0;
    return order != 0 ? (order > 0) - (order < 0) : (a->count > b->count) - (a->count < b->count);
  }
  if (a->type == TM_COLUMN_NUMBER) return (a->number > b->number) - (a->number < b->number);
  if (a->type == TM_COLUMN_SHAPE) {
    const double a_elements = element_count(a), b_elements = element_count(b);
    return (a_elements > b_elements) - (a_elements < b_elements);
  }
  return (a->count > b->count) - (a->count < b->count);
}

static int compare_keys(const void *left, const void *right) {
  const sort_key *a = left, *b = right;
  int order = 0;
  if (a->cell.defined != b->cell.defined) return a->cell.defined ? -1 : 1;
  if (a->cell.defined) order = compare_values(&a->cell, &b->cell) * a->direction;
  return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

uint64_t *tm_row_order_create(const tm_rows *rows, uint32_t column, bool reversed) {
  tm_cell   cells[TM_MAX_COLUMNS];
  sort_key *keys = calloc(rows->count > 0 ? (size_t)rows->count : 1, sizeof *keys);
  uint64_t *order = calloc(rows->count > 0 ? (size_t)rows->count : 1, sizeof *order);
  if (keys == NULL || order == NULL) {
    free(keys);
    free(order);
    return NULL;
  }
  const bool text = rows->columns[column].type == TM_COLUMN_TEXT;
  for (uint64_t row = 0; row < rows->count; row++) {
    const bool there = rows->row(rows->source, row, cells);
    keys[row] = (sort_key){ row, there ? cells[column] : tm_cell_undefined(rows->columns[column].type),
                            text != reversed ? 1 : -1 };
  }
  qsort(keys, (size_t)rows->count, sizeof *keys, compare_keys);
  for (uint64_t row = 0; row < rows->count; row++) order[row] = keys[row].row;
  free(keys);
  return order;
}
