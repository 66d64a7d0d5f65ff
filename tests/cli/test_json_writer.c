/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "json_writer.h"
#include "output_buffer.h"

static void nests_and_separates(void **state) {
  (void)state;
  static output_buffer buffer;
  tm_json_writer       json;
  output_buffer_init(&buffer);
  tm_json_init(&json, &buffer.stream);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "x/1");
  tm_json_begin_array(&json, "rows", false);
  for (uint64_t i = 0; i < 2; i++) {
    tm_json_begin_object(&json, NULL, true);
    tm_json_count(&json, "n", i);
    tm_json_begin_array(&json, "shape", false);
    tm_json_count(&json, NULL, UINT64_MAX);
    tm_json_end_array(&json);
    tm_json_end_object(&json);
  }
  tm_json_end_array(&json);
  tm_json_begin_array(&json, "none", false);
  tm_json_end_array(&json);
  tm_json_bool(&json, "yes", true);
  tm_json_text(&json, "nothing", NULL);
  tm_json_end_object(&json);
  tm_json_finish(&json);
  assert_string_equal(output_buffer_text(&buffer),
                      "{\n  \"schema\": \"x/1\",\n  \"rows\": [\n    {\"n\": 0, \"shape\": [18446744073709551615]},\n"
                      "    {\"n\": 1, \"shape\": [18446744073709551615]}\n  ],\n  \"none\": [],\n  \"yes\": true,\n  "
                      "\"nothing\": null\n}\n");
}

static const char *string_of(const char *text, size_t length) {
  static output_buffer buffer;
  tm_json_writer       json;
  output_buffer_init(&buffer);
  tm_json_init(&json, &buffer.stream);
  tm_json_string(&json, NULL, text, length);
  return output_buffer_text(&buffer);
}

static void escapes_strings(void **state) {
  (void)state;
  assert_string_equal(string_of("a\"b\\c\n\t\x01\x7f", 9), "\"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u007f\"");
  assert_string_equal(string_of("\0", 1), "\"\\u0000\"");
  assert_string_equal(string_of("\xc3\xa4\xf0\x9f\x98\x80", 6), "\"\xc3\xa4\xf0\x9f\x98\x80\"");
  assert_string_equal(string_of("\xc2\x9b" "a\xe2\x80\xae\xf3\xa0\x80\x81", 10), "\"\\u009ba\\u202e\\udb40\\udc01\"");
  /* a lone continuation byte, an overlong form, a surrogate, a cut character: none of them is UTF-8 */
  assert_string_equal(string_of("\x80", 1), "\"\xef\xbf\xbd\"");
  assert_string_equal(string_of("\xc0\xaf", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  assert_string_equal(string_of("\xed\xa0\x80", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  assert_string_equal(string_of("\xe2\x82", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

static const char *number_of(double value) {
  static output_buffer buffer;
  tm_json_writer       json;
  output_buffer_init(&buffer);
  tm_json_init(&json, &buffer.stream);
  tm_json_number(&json, NULL, value);
  return output_buffer_text(&buffer);
}

static void numbers_read_back(void **state) {
  (void)state;
  static const double values[] = { 0, -0.0, 1, 0.1, 1.0 / 3, 1e308, 5e-324, -123456.789, 2.2250738585072014e-308 };
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    const double back = strtod(number_of(values[i]), NULL);
    assert_memory_equal(&back, &values[i], sizeof back);
  }
  assert_string_equal(number_of(0.1), "0.1");
  assert_string_equal(number_of((double)NAN), "null");
  assert_string_equal(number_of((double)-INFINITY), "null");
}

static int fail_after_first(void *context, const char *data, size_t bytes) {
  (void)data;
  (void)bytes;
  int *calls = context;
  return ++*calls > 1 ? 32 : 0;
}

static void a_broken_stream_stays_quiet(void **state) {
  (void)state;
  static tm_output_stream stream;
  int calls = 0;
  tm_output_stream_init(&stream, fail_after_first, &calls);
  for (int i = 0; i < 10; i++) tm_output_repeat(&stream, 'x', TM_OUTPUT_STREAM_BYTES);
  assert_false(tm_output_flush(&stream));
  assert_int_equal(stream.error, 32);
  assert_int_equal(calls, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(nests_and_separates), cmocka_unit_test(escapes_strings),
                                      cmocka_unit_test(numbers_read_back),
                                      cmocka_unit_test(a_broken_stream_stays_quiet) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
