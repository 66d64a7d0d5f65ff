/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "output_buffer.h"
#include "printable_text.h"

static const char *escaped(const char *text, size_t length) {
  static char out[256];
  const size_t used = tm_printable_escape(text, length, out, sizeof out);
  assert_int_equal(used, strlen(out));
  return out;
}

static void neutralizes_controls(void **state) {
  (void)state;
  assert_string_equal(escaped("a\x1b[31m", 6), "a\\x1b[31m");
  assert_string_equal(escaped("a\n\t\r\0b", 6), "a\\n\\t\\r\\x00b");
  assert_string_equal(escaped("back\\slash", 10), "back\\\\slash");
  assert_string_equal(escaped("\xc2\x9b" "31m", 5), "\\u009b31m");
  assert_string_equal(escaped("a\xe2\x80\xae" "b", 5), "a\\u202eb");
  assert_string_equal(escaped("a\xd8\x9c" "b", 4), "a\\u061cb");
  assert_string_equal(escaped("\xff\xfe", 2), "\\xff\\xfe");
  assert_string_equal(escaped("gr\xc3\xbc\xc3\x9f", 6), "gr\xc3\xbc\xc3\x9f");
}

static void cuts_between_characters(void **state) {
  (void)state;
  char out[6];
  assert_int_equal(tm_printable_escape("abc\n\n", 5, out, sizeof out), 5);
  assert_string_equal(out, "abc\\n");
  assert_int_equal(tm_printable_escape("abcd\xc3\xa4", 6, out, sizeof out), 4);
  assert_string_equal(out, "abcd");
}

static void counts_cells(void **state) {
  (void)state;
  assert_int_equal(tm_printable_width("abc", 3), 3);
  assert_int_equal(tm_printable_width("\xc3\xa4", 2), 1);
  assert_int_equal(tm_printable_width("\xe6\xbc\xa2\xe5\xad\x97", 6), 4);
  assert_int_equal(tm_printable_width("e\xcc\x81", 3), 1);
}

static const char *shortened(const char *text, size_t width) {
  static char out[128];
  strcpy(out, text);
  tm_printable_shorten(out, width);
  assert_true(tm_printable_width(out, strlen(out)) <= width);
  return out;
}

static void shortens_in_the_middle(void **state) {
  (void)state;
  assert_string_equal(shortened("model.layers.12.weight", 30), "model.layers.12.weight");
  assert_string_equal(shortened("model.layers.12.weight", 15), "model....weight");
  assert_string_equal(shortened("abcdef", 4), "...f");
  assert_string_equal(shortened("abcdef", 3), "abc");
  assert_string_equal(shortened("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", 7), "\xe6\xbc\xa2...\xe5\xad\x97");
  assert_string_equal(shortened("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", 6), "...\xe5\xad\x97");
}

static void wraps_words(void **state) {
  (void)state;
  static output_buffer buffer;
  output_buffer_init(&buffer);
  tm_printable_wrap(&buffer.stream, "one two  three incomprehensible x", 2, 10);
  assert_string_equal(output_buffer_text(&buffer), "one two\n  three\n  incomprehensible\n  x\n");
  output_buffer_init(&buffer);
  tm_printable_wrap(&buffer.stream, "no limit at all", 0, 0);
  assert_string_equal(output_buffer_text(&buffer), "no limit at all\n");
}

/* What follows a head that takes most of the line is not pressed into the rest of it. */
static void breaks_a_wide_head(void **state) {
  output_buffer buffer;
  (void)state;
  output_buffer_init(&buffer);
  tm_printable_sentence(&buffer.stream, "node 12 'some.name': ", "add a 64x64 -> b", 24);
  assert_string_equal(output_buffer_text(&buffer), "node 12 'some.name': add\n    a 64x64 -> b\n");
  output_buffer_init(&buffer);
  tm_printable_sentence(&buffer.stream, "node 12 'some.name': ", "add a 64x64 -> b", 12);
  assert_string_equal(output_buffer_text(&buffer), "node 12\n    'some.name':\n    add a\n    64x64 ->\n    b\n");
  output_buffer_init(&buffer);
  tm_printable_sentence(&buffer.stream, "node: ", "add a b", 12);
  assert_string_equal(output_buffer_text(&buffer), "node: add a\n      b\n");
}

static void prints_names_of_strangers(void **state) {
  (void)state;
  static output_buffer buffer;
  output_buffer_init(&buffer);
  assert_int_equal(tm_printable_print(&buffer.stream, "a\x1b[1m\\\xc2\x9b"), 15);
  assert_string_equal(output_buffer_text(&buffer), "a\\x1b[1m\\\\u009b");
  output_buffer_init(&buffer);
  tm_printable_about(&buffer.stream, "b\x07", "one \x1b[2J two", 14);
  assert_string_equal(output_buffer_text(&buffer), "b\\x07: one\n       \\x1b[2J\n       two\n");
}

static void ends_at_a_word(void **state) {
  (void)state;
  const struct { const char *text; size_t most; const char *wanted; } cases[] = {
    { "one two", 7, "one two" }, { "one two three", 12, "one two..." }, { "one, two", 7, "one..." }, { "one two three", 10, "one two..." },
    { "one two three", 9, "one..." }, { "unbroken", 5, "" }, { "one two", 2, "" }, { "", 0, "" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[32];
    strcpy(text, cases[i].text);
    tm_printable_end_at_word(text, cases[i].most);
    assert_string_equal(text, cases[i].wanted);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(neutralizes_controls), cmocka_unit_test(cuts_between_characters),
                                      cmocka_unit_test(counts_cells), cmocka_unit_test(shortens_in_the_middle),
                                      cmocka_unit_test(wraps_words), cmocka_unit_test(breaks_a_wide_head), cmocka_unit_test(prints_names_of_strangers),
                                      cmocka_unit_test(ends_at_a_word) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
