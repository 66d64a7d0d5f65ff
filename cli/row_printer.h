/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_printer.h - typed rows (tensormorph.h: tm_column, tm_cell) as a table for people, as CSV (RFC 4180), and as JSON
 * objects.  A table is measured before it is printed, so its rows are asked for twice; CSV and JSON take rows as they
 * come.
 */
#ifndef TM_CLI_ROW_PRINTER_H
#define TM_CLI_ROW_PRINTER_H

#include <stdbool.h>
#include <string.h>

#include "json_writer.h"
#include "output_stream.h"
#include "tensormorph/tensormorph.h"

#define TM_MAX_COLUMNS 32

/* Beside TM_COLUMN_*, in tables only: a number from 0 to 1, shown as a percentage. */
#define TM_CELL_SHARE 0x100u

/* Likewise: a text that was made fit for people already, as names of devices are; a second time would show escapes of escapes. */
#define TM_CELL_PHRASE 0x101u

/* Fills one cell a column.  false: there is no such row, which ends the table. */
typedef bool (*tm_row_fn)(const void *source, uint64_t row, tm_cell *out_cells);

typedef struct tm_rows {
  const tm_column *columns;
  uint32_t         column_count;        /* at most TM_MAX_COLUMNS */
  tm_row_fn        row;
  const void      *source;
  uint64_t         count;
  const uint64_t  *order;               /* count row numbers; NULL: as they come */
} tm_rows;

/* A column as a table shows it. */
typedef struct tm_column_view {
  uint32_t    column;                   /* index into columns */
  uint32_t    least_width;              /* texts longer than the room are shortened to this at most; 0: never */
  uint32_t    drop_rank;                /* see table_layout.h */
  bool        is_alert;                 /* a count other than 0 is shown in red */
  const char *heading;                  /* NULL: the column's name */
} tm_column_view;

/* How a row is painted where there is colour: a terminal's sequence; NULL: as it comes. */
typedef const char *(*tm_row_paint_fn)(const void *source, const tm_cell *cells);

typedef struct tm_table_look {
  uint32_t width;                       /* 0: no limit */
  uint32_t indent;
  bool     color;
  tm_row_paint_fn paint;                /* NULL: none but alerts */
  const char     *all_in;               /* what shows the columns that had no room: "--json shows"; NULL: nothing is said of them */
} tm_table_look;

/* The table with its heading line, and below it which columns had no room.  Returns how many. */
uint32_t tm_rows_print_table(const tm_rows *rows, const tm_column_view *views, uint32_t view_count,
                             const tm_table_look *look, tm_output_stream *stream);

void tm_rows_print_csv_heading(const tm_column *columns, uint32_t count, tm_output_stream *stream);
void tm_row_print_csv(const tm_column *columns, uint32_t count, const tm_cell *cells, tm_output_stream *stream);
void tm_cell_print_json(const char *key, const tm_cell *cell, tm_json_writer *json);
/* One object on one line; columns named in `skip` (a mask by index) are not in it. */
void tm_row_print_json(const tm_column *columns, uint32_t count, const tm_cell *cells, uint32_t skip,
                       tm_json_writer *json);

/* Cells. */
static inline tm_cell tm_cell_text_of(const char *text, uint64_t length) {
  return (tm_cell){ .type = TM_COLUMN_TEXT, .defined = 1, .count = length, .text = text };
}
static inline tm_cell tm_cell_text(const char *text) { return tm_cell_text_of(text, strlen(text)); }
static inline tm_cell tm_cell_count(uint64_t count) { return (tm_cell){ .type = TM_COLUMN_COUNT, .defined = 1, .count = count }; }
static inline tm_cell tm_cell_bytes(uint64_t bytes) { return (tm_cell){ .type = TM_COLUMN_BYTES, .defined = 1, .count = bytes }; }
static inline tm_cell tm_cell_number(double number) { return (tm_cell){ .type = TM_COLUMN_NUMBER, .defined = 1, .number = number }; }
static inline tm_cell tm_cell_share(double share) { return (tm_cell){ .type = TM_CELL_SHARE, .defined = 1, .number = share }; }
static inline tm_cell tm_cell_shape(const uint64_t *dims, uint64_t rank) {
  return (tm_cell){ .type = TM_COLUMN_SHAPE, .defined = 1, .count = rank, .shape = dims };
}
static inline tm_cell tm_cell_undefined(uint32_t type) { return (tm_cell){ .type = type }; }

size_t tm_cell_shape_text(const tm_cell *cell, char *out, size_t capacity);

#endif
