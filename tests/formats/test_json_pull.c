/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_pull.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The tokens of a text as one letter each: ! is an error, the end is nothing. */
static const char *kinds_of(const char *text, uint64_t length) {
  static const char letters[] = ".!{}[]ksn+-0";
  static char kinds[4096];
  tm_json_pull json;
  tm_json_token token;
  size_t used = 0;
  tm_json_init(&json, text, length);
  for (;;) {
    const tm_json_kind kind = tm_json_next(&json, &token);
    if (kind == TM_JSON_END || used == sizeof kinds - 2) break;
    kinds[used++] = letters[kind];
    if (kind == TM_JSON_ERROR) break;
  }
  kinds[used] = '\0';
  return kinds;
}

static void grammar(void **state) {
  (void)state;
  static const struct { const char *text, *kinds; } cases[] = {
    { "{}", "{}" }, { " { } \n", "{}" }, { "[]", "[]" }, { "[1,2]", "[nn]" }, { "{\"a\":1}", "{kn}" },
    { "{\"a\":{\"b\":[true,false,null]},\"c\":\"d\"}", "{k{k[+-0]}ks}" }, { "3", "n" }, { "\"x\"", "s" }, { "null", "0" },
    { "[[],[{}],{}]", "[[][{}]{}]" }, { "[-0.5e+3,0,1E5]", "[nnn]" },
    /* wrong */
    { "", "!" }, { "  ", "!" }, { "{", "{!" }, { "[1", "[n!" }, { "[1,]", "[n!" }, { "[,1]", "[!" }, { "{\"a\"}", "{!" },
    { "{\"a\":}", "{k!" }, { "{\"a\":1,}", "{kn!" }, { "{a:1}", "{!" }, { "{} x", "{}!" }, { "{}{}", "{}!" }, { "]", "!" },
    { "[}", "[!" }, { "{]", "{!" }, { "[1 2]", "[n!" }, { "tru", "!" }, { "nul", "!" }, { "01", "!" }, { "1.", "!" },
    { "-", "!" }, { "+1", "!" }, { ".5", "!" }, { "1e", "!" }, { "1e+", "!" }, { "\"abc", "!" }, { "'a'", "!" },
    { "{\"a\" 1}", "{!" }, { "{1:2}", "{!" }, { "// x\n1", "!" }, { "NaN", "!" }, { "Infinity", "!" }, { "[1,", "[n!" },
    { "{\"a\":1", "{kn!" }, { "{\"a\":1,", "{kn!" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (strcmp(kinds_of(cases[i].text, strlen(cases[i].text)), cases[i].kinds) != 0)
      fail_msg("%s gives %s, not %s", cases[i].text, kinds_of(cases[i].text, strlen(cases[i].text)), cases[i].kinds);
  assert_string_equal(kinds_of("1\0", 2), "n!");
}

static void strings(void **state) {
  (void)state;
  static const struct { const char *text; uint64_t length; const char *meaning; int64_t meaning_length; } cases[] = {
    { "\"\"", 2, "", 0 }, { "\"a b\"", 5, "a b", 3 }, { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", 18, "\"\\/\b\f\n\r\t", 8 },
    { "\"\\u0041\\u00e9\\u20AC\"", 20, "A\xc3\xa9\xe2\x82\xac", 6 }, { "\"\\ud83d\\ude00\"", 14, "\xf0\x9f\x98\x80", 4 },
    { "\"\\uDBFF\\uDFFF\"", 14, "\xf4\x8f\xbf\xbf", 4 }, { "\"\\u0000x\"", 9, "\0x", 2 }, { "\"caf\xc3\xa9\"", 7, "caf\xc3\xa9", 5 },
    /* wrong */
    { "\"\\x\"", 4, NULL, 0 }, { "\"\\u12\"", 6, NULL, 0 }, { "\"\\u12g4\"", 8, NULL, 0 }, { "\"\\ud83d\"", 8, NULL, 0 },
    { "\"\\ud83dx\"", 9, NULL, 0 }, { "\"\\ud83d\\u0041\"", 14, NULL, 0 }, { "\"\\ude00\"", 8, NULL, 0 },
    { "\"\\", 2, NULL, 0 }, { "\"\\\0\"", 4, NULL, 0 }, { "\"a\nb\"", 5, NULL, 0 }, { "\"\x1f\"", 3, NULL, 0 }, { "\"\0\"", 3, NULL, 0 },
    { "\"\xff\"", 3, NULL, 0 }, { "\"\xc0\x80\"", 4, NULL, 0 }, { "\"\xed\xa0\x80\"", 5, NULL, 0 }, { "\"\xc3\"", 3, NULL, 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_json_pull json;
    tm_json_token token;
    char meaning[64];
    tm_json_init(&json, cases[i].text, cases[i].length);
    const tm_json_kind kind = tm_json_next(&json, &token);
    if (kind != (cases[i].meaning == NULL ? TM_JSON_ERROR : TM_JSON_STRING)) fail_msg("case %zu: %s", i, cases[i].text);
    if (kind == TM_JSON_ERROR) continue;
    assert_true(token.length <= sizeof meaning);
    assert_int_equal(tm_json_unescape(&token, meaning), cases[i].meaning_length);
    assert_memory_equal(meaning, cases[i].meaning, (size_t)cases[i].meaning_length);
  }
}

static void numbers(void **state) {
  (void)state;
  static const struct { const char *text; bool is_integer; uint64_t integer; } cases[] = {
    { "0", true, 0 }, { "18446744073709551615", true, UINT64_MAX }, { "18446744073709551616", false, 0 },
    { "99999999999999999999999999", false, 0 }, { "-1", false, 0 }, { "1.0", false, 0 }, { "1e3", false, 0 }, { "-0", false, 0 },
    { "9223372036854775808", true, UINT64_C(1) << 63 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_json_pull json;
    tm_json_token token;
    tm_json_init(&json, cases[i].text, strlen(cases[i].text));
    assert_int_equal(tm_json_next(&json, &token), TM_JSON_NUMBER);
    assert_int_equal(token.is_integer, cases[i].is_integer);
    if (token.is_integer) assert_true(token.integer == cases[i].integer);
    assert_int_equal(tm_json_next(&json, &token), TM_JSON_END);
  }
}

static void comparing(void **state) {
  (void)state;
  static const struct { const char *text; bool expected; } cases[] = {
    { "\"dtype\"", true }, { "\"d\\u0074ype\"", true }, { "\"\\u0064\\u0074\\u0079\\u0070\\u0065\"", true },
    { "\"dtypes\"", false }, { "\"dtyp\"", false }, { "\"d\\u0075ype\"", false }, { "\"dtype\\u0000\"", false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_json_pull json;
    tm_json_token token;
    tm_json_init(&json, cases[i].text, strlen(cases[i].text));
    assert_int_equal(tm_json_next(&json, &token), TM_JSON_STRING);
    assert_int_equal(tm_json_is(&token, "dtype"), cases[i].expected);
  }
}

static void depth_is_bounded(void **state) {
  (void)state;
  for (uint32_t depth = 1; depth <= TM_JSON_MAX_DEPTH + 1; depth++) {
    char text[2 * (TM_JSON_MAX_DEPTH + 1)];
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    assert_int_equal(strchr(kinds_of(text, 2 * (uint64_t)depth), '!') != NULL, depth > TM_JSON_MAX_DEPTH);
  }
}

static void skipping(void **state) {
  (void)state;
  const char text[] = "[{\"a\":[1,{\"b\":[[]]}],\"c\":{}},\"next\",[[[1]]],true]";
  static const tm_json_kind firsts[] = { TM_JSON_OBJECT_BEGIN, TM_JSON_STRING, TM_JSON_ARRAY_BEGIN, TM_JSON_TRUE };
  tm_json_pull json;
  tm_json_token token;
  tm_json_init(&json, text, sizeof text - 1);
  assert_int_equal(tm_json_next(&json, &token), TM_JSON_ARRAY_BEGIN);
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(tm_json_next(&json, &token), firsts[i]);
    assert_true(tm_json_skip(&json, &token));
  }
  assert_int_equal(tm_json_next(&json, &token), TM_JSON_ARRAY_END);
  assert_int_equal(tm_json_next(&json, &token), TM_JSON_END);
  tm_json_init(&json, "[[1,2", 5);
  assert_int_equal(tm_json_next(&json, &token), TM_JSON_ARRAY_BEGIN);
  assert_false(tm_json_skip(&json, &token));
}

static void errors_have_offsets(void **state) {
  (void)state;
  static const struct { const char *text; uint64_t offset; } cases[] = {
    { "{\"a\":x}", 5 }, { "{\"a\":\"b\x01\"}", 7 }, { "[1, 2,, 3]", 6 }, { "{} {", 3 }, { "[\"abc", 1 }, { "[1 ", 3 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_json_pull json;
    tm_json_token token;
    tm_json_init(&json, cases[i].text, strlen(cases[i].text));
    while (tm_json_next(&json, &token) != TM_JSON_ERROR) assert_int_not_equal(token.kind, TM_JSON_END);
    assert_int_equal(json.error_offset, cases[i].offset);
    assert_non_null(json.error_text);
    assert_int_equal(tm_json_next(&json, &token), TM_JSON_ERROR);
    assert_int_equal(json.error_offset, cases[i].offset);
  }
}

/* Every prefix of a valid text is an error, and none is read past its end (the copies have exact sizes). */
static void prefixes(void **state) {
  (void)state;
  const char text[] = "{\"a\\u00e9\xc3\xa9\":[1,-2.5e3,true,null,\"\\ud83d\\ude00\"],\"b\":{}}";
  for (size_t length = 0; length < sizeof text - 1; length++) {
    char *copy = malloc(length + (length == 0));
    memcpy(copy, text, length);
    const char *kinds = kinds_of(copy, length);
    assert_int_equal(kinds[strlen(kinds) - 1], '!');
    free(copy);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(grammar), cmocka_unit_test(strings), cmocka_unit_test(numbers), cmocka_unit_test(comparing),
    cmocka_unit_test(depth_is_bounded), cmocka_unit_test(skipping), cmocka_unit_test(errors_have_offsets),
    cmocka_unit_test(prefixes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
