/* SPDX-License-Identifier: Apache-2.0 */
#include "row_printer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "printable_text.h"
#include "quantity.h"
#include "table_layout.h"

/* Longest cell text that a table keeps; names beyond are shortened before anything else. */
#define CELL_BYTES 4096
/* Where lines have no limit, one long name would fill all other lines up with blanks. */
#define MOST_PADDED 200u

size_t tm_cell_shape_text(const tm_cell *cell, char *out, size_t capacity) {
  if (cell->count == 0) return (size_t)snprintf(out, capacity, "scalar");
  size_t used = 0;
  for (uint64_t i = 0; i < cell->count && used + 24 < capacity; i++) {
    char   digits[24];
    char  *first = digits + sizeof digits;
    uint64_t dim = cell->shape[i];
    do {
      *--first = (char)('0' + dim % 10);
      dim /= 10;
    } while (dim != 0);
    if (i > 0) out[used++] = 'x';
    memcpy(out + used, first, (size_t)(digits + sizeof digits - first));
    used += (size_t)(digits + sizeof digits - first);
  }
  out[used] = '\0';
  return used;
}

/* "100 %" is all of it, and nothing less. */
static void share_text(double share, char *out, size_t capacity) {
  const double percent = 100 * share;
  if (percent >= 99.95 && percent < 100)
    snprintf(out, capacity, "> 99.9 %%");
  else
    snprintf(out, capacity, "%.3g %%", percent);
}

/* What a person reads, in out[CELL_BYTES]. */
static void cell_text(const tm_cell *cell, char *out) {
  tm_quantity quantity;
  if (!cell->defined) {
    memcpy(out, "-", 2);
    return;
  }
  switch (cell->type) {
    case TM_CELL_PHRASE:
    case TM_COLUMN_TEXT: {
      size_t (*escape)(const char *, size_t, char *, size_t) = cell->type == TM_CELL_PHRASE ? tm_printable_clean : tm_printable_escape;
      const size_t length = (size_t)cell->count, half = CELL_BYTES / 8;
      if (length <= CELL_BYTES / 4) {
        escape(cell->text, length, out, CELL_BYTES);
        break;
      }
      size_t used = escape(cell->text, half, out, CELL_BYTES / 2);
      memcpy(out + used, "...", 4);
      escape(cell->text + length - half, half, out + used + 3, CELL_BYTES / 2 - 3);
      break;
    }
    case TM_COLUMN_COUNT: strcpy(out, tm_quantity_count(cell->count, &quantity)); break;
    case TM_COLUMN_BYTES: strcpy(out, tm_quantity_bytes(cell->count, &quantity)); break;
    case TM_COLUMN_NUMBER: snprintf(out, CELL_BYTES, "%.4g", cell->number); break;
    case TM_COLUMN_SHAPE: tm_cell_shape_text(cell, out, CELL_BYTES); break;
    case TM_CELL_SHARE: share_text(cell->number, out, CELL_BYTES); break;
    default: memcpy(out, "?", 2);
  }
}

static bool is_left_aligned(const tm_column *column) {
  return column->type == TM_COLUMN_TEXT || column->type == TM_COLUMN_SHAPE;
}

static const char *heading_of(const tm_rows *rows, const tm_column_view *view) {
  return view->heading != NULL ? view->heading : rows->columns[view->column].name;
}

static bool take_row(const tm_rows *rows, uint64_t position, tm_cell *cells) {
  return rows->row(rows->source, rows->order != NULL ? rows->order[position] : position, cells);
}

/* Numbers that are the same in one row after the other are common, and writing them down is dear.  What cells point to may be gone. */
static bool is_same_number(const tm_cell *a, const tm_cell *b) {
  const bool points = a->type == TM_COLUMN_TEXT || a->type == TM_CELL_PHRASE || a->type == TM_COLUMN_SHAPE;
  return !points && a->type == b->type && a->defined == b->defined && a->count == b->count &&
         memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

/* Cells wider than `most` do not make their column wider: their lines are longer than the others. */
static void measure(const tm_rows *rows, const tm_column_view *views, uint32_t view_count, uint32_t most, tm_layout_column *layout) {
  tm_cell cells[TM_MAX_COLUMNS], measured[TM_MAX_COLUMNS] = { { 0 } };
  char    text[CELL_BYTES];
  for (uint32_t i = 0; i < view_count; i++) {
    const char *heading = heading_of(rows, &views[i]);
    layout[i].wanted = (uint32_t)tm_printable_width(heading, strlen(heading));
    layout[i].drop_rank = views[i].drop_rank;
  }
  for (uint64_t row = 0; row < rows->count && take_row(rows, row, cells); row++)
    for (uint32_t i = 0; i < view_count; i++) {
      const tm_cell *cell = &cells[views[i].column];
      if (is_same_number(cell, &measured[i])) continue;
      measured[i] = *cell;
      cell_text(cell, text);
      const uint32_t width = (uint32_t)tm_printable_width(text, strlen(text));
      if (width > layout[i].wanted && width <= most) layout[i].wanted = width;
    }
  for (uint32_t i = 0; i < view_count; i++)
    layout[i].least = views[i].least_width != 0 ? views[i].least_width : layout[i].wanted;
}

typedef struct line_state {
  tm_output_stream *stream;
  uint32_t          owed;       /* blanks that come before the next text, if there is one */
} line_state;

static void print_cell(line_state *line, const char *text, uint32_t width, bool left, const char *paint) {
  const uint32_t used = (uint32_t)tm_printable_width(text, strlen(text));
  const uint32_t padding = width > used ? width - used : 0;
  if (text[0] == '\0') {
    line->owed += width + TM_TABLE_GAP;
    return;
  }
  tm_output_repeat(line->stream, ' ', line->owed + (left ? 0 : padding));
  if (paint != NULL) tm_output_text(line->stream, paint);
  tm_output_text(line->stream, text);
  if (paint != NULL) tm_output_text(line->stream, "\x1b[0m");
  line->owed = TM_TABLE_GAP + (left ? padding : 0);
}

static void print_heading(const tm_rows *rows, const tm_column_view *views, uint32_t view_count,
                          const tm_layout_column *layout, const tm_table_look *look, tm_output_stream *stream) {
  line_state line = { stream, look->indent };
  for (uint32_t i = 0; i < view_count; i++) {
    if (layout[i].width == 0) continue;
    char text[64];
    snprintf(text, sizeof text, "%s", heading_of(rows, &views[i]));
    tm_printable_shorten(text, layout[i].width);
    print_cell(&line, text, layout[i].width, is_left_aligned(&rows->columns[views[i].column]),
               look->color ? "\x1b[1m" : NULL);
  }
  tm_output_char(stream, '\n');
}

static void print_row(const tm_rows *rows, const tm_column_view *views, uint32_t view_count,
                      const tm_layout_column *layout, const tm_table_look *look, const tm_cell *cells,
                      tm_output_stream *stream) {
  line_state  line = { stream, look->indent };
  char        text[CELL_BYTES];
  const char *paint = look->color && look->paint != NULL ? look->paint(rows->source, cells) : NULL;
  for (uint32_t i = 0; i < view_count; i++) {
    if (layout[i].width == 0) continue;
    const tm_cell *cell = &cells[views[i].column];
    const bool     alert = views[i].is_alert && look->color && cell->defined && cell->count != 0;
    cell_text(cell, text);
    if (layout[i].width < layout[i].wanted) tm_printable_shorten(text, layout[i].width);
    print_cell(&line, text, layout[i].width, is_left_aligned(&rows->columns[views[i].column]),
               alert ? "\x1b[31m" : paint);
  }
  tm_output_char(stream, '\n');
}

/* "(2 columns had no room: copies, setup; --json shows all)" */
static void print_left_out(const tm_rows *rows, const tm_column_view *views, uint32_t view_count, const tm_layout_column *layout,
                           uint32_t dropped, const tm_table_look *look, tm_output_stream *stream) {
  char     text[TM_MAX_COLUMNS * 32 + 160];
  size_t   used = (size_t)snprintf(text, sizeof text, "(%u column%s had no room", dropped, dropped == 1 ? "" : "s");
  uint32_t told = 0;
  for (uint32_t i = 0; i < view_count; i++)
    if (layout[i].width == 0)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%.28s", told++ == 0 ? ": " : ", ", heading_of(rows, &views[i]));
  snprintf(text + used, sizeof text - used, "; %.80s all)", look->all_in);
  tm_printable_wrap(stream, text, 0, look->width);
}

uint32_t tm_rows_print_table(const tm_rows *rows, const tm_column_view *views, uint32_t view_count,
                             const tm_table_look *look, tm_output_stream *stream) {
  tm_layout_column layout[TM_MAX_COLUMNS] = { { 0 } };
  tm_cell          cells[TM_MAX_COLUMNS];
  measure(rows, views, view_count, look->width == 0 ? MOST_PADDED : UINT32_MAX, layout);
  const uint32_t room = look->width == 0 ? 0 : look->width > look->indent ? look->width - look->indent : 1;
  const uint32_t dropped = tm_table_fit(layout, view_count, room);
  print_heading(rows, views, view_count, layout, look, stream);
  for (uint64_t row = 0; row < rows->count && stream->error == 0 && take_row(rows, row, cells); row++)
    print_row(rows, views, view_count, layout, look, cells, stream);
  if (dropped != 0 && look->all_in != NULL) print_left_out(rows, views, view_count, layout, dropped, look, stream);
  return dropped;
}

/* ---------------------------------------------------------------------------------------------------- machines ---- */

static void print_csv_text(const char *text, size_t length, tm_output_stream *stream) {
  bool plain = true;
  for (size_t i = 0; i < length && plain; i++)
    plain = text[i] != '"' && text[i] != ',' && text[i] != '\n' && text[i] != '\r' && text[i] != '\0';
  if (plain) {
    tm_output_bytes(stream, text, length);
    return;
  }
  tm_output_char(stream, '"');
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '"') tm_output_char(stream, '"');
    tm_output_char(stream, text[i]);
  }
  tm_output_char(stream, '"');
}

void tm_rows_print_csv_heading(const tm_column *columns, uint32_t count, tm_output_stream *stream) {
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) tm_output_char(stream, ',');
    print_csv_text(columns[i].name, strlen(columns[i].name), stream);
  }
  tm_output_text(stream, "\r\n");
}

static void print_csv_cell(const tm_cell *cell, tm_output_stream *stream) {
  char text[CELL_BYTES];
  if (!cell->defined) return;
  switch (cell->type) {
    case TM_COLUMN_TEXT: print_csv_text(cell->text, (size_t)cell->count, stream); break;
    case TM_COLUMN_NUMBER:
      if (isfinite(cell->number)) tm_output_format(stream, "%.17g", cell->number);
      break;
    case TM_COLUMN_SHAPE: tm_output_bytes(stream, text, tm_cell_shape_text(cell, text, sizeof text)); break;
    default: tm_output_format(stream, "%llu", (unsigned long long)cell->count);
  }
}

void tm_row_print_csv(const tm_column *columns, uint32_t count, const tm_cell *cells, tm_output_stream *stream) {
  (void)columns;
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) tm_output_char(stream, ',');
    print_csv_cell(&cells[i], stream);
  }
  tm_output_text(stream, "\r\n");
}

void tm_cell_print_json(const char *key, const tm_cell *cell, tm_json_writer *json) {
  if (!cell->defined) {
    tm_json_null(json, key);
    return;
  }
  switch (cell->type) {
    case TM_COLUMN_TEXT: tm_json_string(json, key, cell->text, (size_t)cell->count); break;
    case TM_COLUMN_NUMBER: tm_json_number(json, key, cell->number); break;
    case TM_COLUMN_SHAPE:
      tm_json_begin_array(json, key, true);
      for (uint64_t i = 0; i < cell->count; i++) tm_json_count(json, NULL, cell->shape[i]);
      tm_json_end_array(json);
      break;
    default: tm_json_count(json, key, cell->count);
  }
}

void tm_row_print_json(const tm_column *columns, uint32_t count, const tm_cell *cells, uint32_t skip,
                       tm_json_writer *json) {
  tm_json_begin_object(json, NULL, true);
  for (uint32_t i = 0; i < count; i++)
    if ((skip >> i & 1u) == 0) tm_cell_print_json(columns[i].name, &cells[i], json);
  tm_json_end_object(json);
}
