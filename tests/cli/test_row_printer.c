/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "complain.h"
#include <stdlib.h>

#include "output_buffer.h"
#include "progress_line.h"
#include "row_order.h"
#include "row_printer.h"
#include "row_selection.h"
#include "table_layout.h"

static const tm_column columns[] = { { "name", TM_COLUMN_TEXT, 0, "" },
                                     { "shape", TM_COLUMN_SHAPE, 0, "" },
                                     { "count", TM_COLUMN_COUNT, 0, "" },
                                     { "bytes", TM_COLUMN_BYTES, 0, "" },
                                     { "mean", TM_COLUMN_NUMBER, 0, "" } };
static const uint64_t dims[] = { 4096, 64 };

static bool sample_row(const void *source, uint64_t row, tm_cell *cells) {
  (void)source;
  static const char *const names[] = { "layers.0.attention.weight", "a,\"b\"\n", "b" };
  if (row >= 3) return false;
  cells[0] = tm_cell_text(names[row]);
  cells[1] = tm_cell_shape(dims, row == 2 ? 0 : 2 - row);
  cells[2] = tm_cell_count(row * 1000);
  cells[3] = tm_cell_bytes(row == 1 ? 999 : 1048576);
  cells[4] = row == 2 ? tm_cell_undefined(TM_COLUMN_NUMBER) : tm_cell_number(row == 0 ? -0.1 : 2.5);
  return true;
}

static const tm_rows sample = { columns, 5, sample_row, NULL, 3, NULL };
static const tm_column_view views[] = { { 0, 10, 0, false, NULL },
                                        { 1, 0, 2, false, NULL },
                                        { 2, 0, 0, true, "n" },
                                        { 3, 0, 3, false, NULL },
                                        { 4, 0, 1, false, NULL } };

static const char *table(uint32_t width, bool color, uint32_t *out_dropped) {
  static output_buffer buffer;
  const tm_table_look  look = { .width = width, .color = color };
  output_buffer_init(&buffer);
  *out_dropped = tm_rows_print_table(&sample, views, 5, &look, &buffer.stream);
  return output_buffer_text(&buffer);
}

/* Who is told how to see all is told what is not there. */
static void names_what_had_no_room(void **state) {
  static output_buffer buffer;
  const tm_table_look  look = { .width = 24, .all_in = "--wide shows" };
  (void)state;
  output_buffer_init(&buffer);
  const uint32_t dropped = tm_rows_print_table(&sample, views, 5, &look, &buffer.stream);
  const char    *line = strchr(output_buffer_text(&buffer), '(');
  assert_int_equal(dropped, 2);
  assert_non_null(line);
  assert_string_equal(line, "(2 columns had no room:\nshape, bytes; --wide\nshows all)\n");
}

static void aligns_columns(void **state) {
  (void)state;
  uint32_t dropped = 9;
  assert_string_equal(table(0, false, &dropped),
                      "name                       shape        n    bytes  mean\n"
                      "layers.0.attention.weight  4096x64      0  1.05 MB  -0.1\n"
                      "a,\"b\"\\n                    4096     1,000    999 B   2.5\n"
                      "b                          scalar   2,000  1.05 MB     -\n");
  assert_int_equal(dropped, 0);
}

static bool long_row(const void *source, uint64_t row, tm_cell *cells) {
  if (!sample_row(source, row, cells)) return false;
  if (row == 1) cells[0] = tm_cell_text_of(source, 900);
  return true;
}

static void pads_nothing_for_one_long_name(void **state) {
  (void)state;
  static output_buffer buffer;
  static char          name[901];
  tm_table_look        look = { .width = 0 };
  memset(name, 'n', 900);
  tm_rows rows = sample;
  rows.row = long_row;
  rows.source = name;
  output_buffer_init(&buffer);
  tm_rows_print_table(&rows, views, 5, &look, &buffer.stream);
  const char *text = output_buffer_text(&buffer);
  assert_non_null(strstr(text, "\nlayers.0.attention.weight  4096x64      0  1.05 MB  -0.1\n"));
  assert_non_null(strstr(text, name));
  look.width = 80;
  output_buffer_init(&buffer);
  tm_rows_print_table(&rows, views, 5, &look, &buffer.stream);
  assert_null(strstr(output_buffer_text(&buffer), name));
}

static void fits_the_width(void **state) {
  (void)state;
  uint32_t dropped = 0;
  for (uint32_t width = 1; width < 80; width++) {
    const char *text = table(width, false, &dropped);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
      if (width >= 17) assert_true(strcspn(line, "\n") <= width);
  }
  table(45, false, &dropped);
  assert_int_equal(dropped, 0);
  assert_non_null(strstr(table(45, false, &dropped), "..."));
  table(38, false, &dropped);
  assert_int_equal(dropped, 1);
  assert_null(strstr(table(38, false, &dropped), "bytes"));
}

static void colours_only_when_asked(void **state) {
  (void)state;
  uint32_t dropped = 0;
  assert_null(strchr(table(0, false, &dropped), '\x1b'));
  assert_non_null(strstr(table(0, true, &dropped), "\x1b[31m1,000\x1b[0m"));
  assert_null(strstr(table(0, true, &dropped), "\x1b[31m0"));
}

static void writes_csv(void **state) {
  (void)state;
  static output_buffer buffer;
  tm_cell cells[TM_MAX_COLUMNS];
  output_buffer_init(&buffer);
  tm_rows_print_csv_heading(columns, 5, &buffer.stream);
  for (uint64_t i = 0; sample_row(NULL, i, cells); i++) tm_row_print_csv(columns, 5, cells, &buffer.stream);
  assert_string_equal(
      output_buffer_text(&buffer),
      "name,shape,count,bytes,mean\r\nlayers.0.attention.weight,4096x64,0,1048576,-0.10000000000000001\r\n"
      "\"a,\"\"b\"\"\n\",4096,1000,999,2.5\r\nb,scalar,2000,1048576,\r\n");
}

static void writes_json_rows(void **state) {
  (void)state;
  static output_buffer buffer;
  tm_cell        cells[TM_MAX_COLUMNS];
  tm_json_writer json;
  output_buffer_init(&buffer);
  tm_json_init(&json, &buffer.stream);
  sample_row(NULL, 2, cells);
  tm_row_print_json(columns, 5, cells, 1u << 3, &json);
  assert_string_equal(output_buffer_text(&buffer), "{\"name\": \"b\", \"shape\": [], \"count\": 2000, \"mean\": null}");
}

static void check_order(uint32_t column, bool reversed, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t *order = tm_row_order_create(&sample, column, reversed);
  assert_non_null(order);
  assert_int_equal(order[0], a);
  assert_int_equal(order[1], b);
  assert_int_equal(order[2], c);
  free(order);
}

static void sorts_rows(void **state) {
  (void)state;
  check_order(0, false, 1, 2, 0);
  check_order(0, true, 0, 2, 1);
  check_order(1, false, 0, 1, 2);
  check_order(2, false, 2, 1, 0);
  check_order(2, true, 0, 1, 2);
  check_order(3, false, 0, 2, 1);
  check_order(4, false, 1, 0, 2);
  check_order(4, true, 0, 1, 2);
}

static void layout_shrinks_before_it_drops(void **state) {
  (void)state;
  tm_layout_column layout[] = { { 30, 10, 0, 0 }, { 20, 20, 1, 0 }, { 5, 5, 2, 0 } };
  assert_int_equal(tm_table_fit(layout, 3, 0), 0);
  assert_int_equal(layout[0].width, 30);
  assert_int_equal(tm_table_fit(layout, 3, 45), 0);
  assert_int_equal(layout[0].width, 16);
  assert_int_equal(tm_table_fit(layout, 3, 35), 1);
  assert_int_equal(layout[2].width, 0);
  assert_int_equal(layout[0].width, 13);
  assert_int_equal(tm_table_fit(layout, 3, 5), 2);
  assert_int_equal(layout[0].width, 10);
}

static void selects_columns(void **state) {
  (void)state;
  static output_buffer buffer;
  tm_arguments     arguments;
  tm_row_selection selection;
  tm_error         error = TM_CLI_ERROR_INIT;
  int              next = 0;
  static const tm_flag flags[] = { TM_ROW_SELECTION_FLAGS, { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL } };
  char *good[] = { "--columns", "count,name", "--top", "1", "--sort", "-count", NULL };
  char *bad[] = { "--columns", "count,nane", NULL };
  tm_arguments_init(&arguments, 6, &error);
  assert_int_equal(tm_arguments_parse(&arguments, 6, good, 0, false, flags, NULL, &next, &error), TM_OK);
  assert_int_equal(tm_row_selection_parse(&arguments, columns, 5, &selection, &error), TM_OK);
  tm_rows   rows = sample;
  uint64_t *order = NULL;
  assert_int_equal(tm_row_selection_apply(&selection, &rows, &order, &error), TM_OK);
  output_buffer_init(&buffer);
  tm_row_selection_print(&selection, &rows, NULL, 0, (tm_table_look){ .width = 0 }, &buffer.stream);
  assert_string_equal(output_buffer_text(&buffer), "count  name\n    0  layers.0.attention.weight\n");
  free(order);
  tm_arguments_deinit(&arguments);
  tm_arguments_init(&arguments, 2, &error);
  assert_int_equal(tm_arguments_parse(&arguments, 2, bad, 0, false, flags, NULL, &next, &error), TM_OK);
  assert_int_equal(tm_row_selection_parse(&arguments, columns, 5, &selection, &error), TM_ERROR_ARGUMENT);
  assert_string_equal(error.text, "unknown column \"nane\"; did you mean \"name\"?");
  tm_arguments_deinit(&arguments);
}

static void progress_fits_its_line(void **state) {
  (void)state;
  const tm_progress progress = { sizeof progress, 0, 12300000000, 33100000000, 119, 311, 0 };
  char text[256];
  tm_progress_format(&progress, 2.1e9, 200, text, sizeof text);
  assert_string_equal(text, " 37%  12.3 GB of 33.1 GB  2.10 GB/s  ETA 0:10  tensor 120 of 311");
  for (uint32_t width = 1; width < 70; width++) {
    tm_progress_format(&progress, 2.1e9, width, text, sizeof text);
    assert_true(strlen(text) <= width);
  }
  tm_progress_format(&progress, 0, 30, text, sizeof text);
  assert_string_equal(text, " 37%  12.3 GB of 33.1 GB");
  const tm_progress nothing = { .struct_size = sizeof nothing };
  tm_progress_format(&nothing, 0, 80, text, sizeof text);
  assert_string_equal(text, "  0%  0 B of 0 B");
}

static const char *paint_odd(const void *source, const tm_cell *cells) {
  (void)source;
  return cells[0].number > 0.5 ? "\x1b[33m" : NULL;
}

static bool share_row(const void *source, uint64_t row, tm_cell *cells) {
  static const double shares[] = { 0, 0.5, 0.9999, 1, 0.0000123 };
  (void)source;
  cells[0] = tm_cell_share(shares[row % 5]);
  return true;
}

static void shows_shares_and_paints_rows(void **state) {
  (void)state;
  static output_buffer buffer;
  static const tm_column      column = { "share", TM_CELL_SHARE, 0, "" };
  static const tm_column_view view = { 0, 0, 0, false, NULL };
  const tm_rows               rows = { &column, 1, share_row, NULL, 5, NULL };
  tm_table_look               look = { .paint = paint_odd };
  output_buffer_init(&buffer);
  tm_rows_print_table(&rows, &view, 1, &look, &buffer.stream);
  assert_string_equal(output_buffer_text(&buffer), "    share\n      0 %\n     50 %\n > 99.9 %\n    100 %\n0.00123 %\n");
  look.color = true;
  output_buffer_init(&buffer);
  tm_rows_print_table(&rows, &view, 1, &look, &buffer.stream);
  assert_non_null(strstr(output_buffer_text(&buffer), "\n     50 %\n \x1b[33m> 99.9 %\x1b[0m\n"));
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(shows_shares_and_paints_rows),
                                      cmocka_unit_test(aligns_columns), cmocka_unit_test(names_what_had_no_room),
                                      cmocka_unit_test(pads_nothing_for_one_long_name),
    cmocka_unit_test(fits_the_width),
                                      cmocka_unit_test(colours_only_when_asked),
                                      cmocka_unit_test(writes_csv),
                                      cmocka_unit_test(writes_json_rows),
                                      cmocka_unit_test(sorts_rows),
                                      cmocka_unit_test(layout_shrinks_before_it_drops),
                                      cmocka_unit_test(selects_columns),
                                      cmocka_unit_test(progress_fits_its_line) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
