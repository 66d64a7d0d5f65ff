/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------------------------------- UTF-8 ---- */

static void utf8_lengths(void **state) {
  (void)state;
  static const struct { const char *text; uint64_t available; uint32_t length; } cases[] = {
    { "a", 1, 1 }, { "", 0, 0 }, { "\0", 1, 1 }, { "\xc3\xa9", 2, 2 }, { "\xc3\xa9", 1, 0 }, { "\xe2\x82\xac", 3, 3 },
    { "\xf0\x9f\x98\x80", 4, 4 }, { "\xf4\x8f\xbf\xbf", 4, 4 },
    { "\x80", 1, 0 }, { "\xc0\x80", 2, 0 }, { "\xc1\xbf", 2, 0 }, { "\xe0\x9f\xbf", 3, 0 },     /* overlong */
    { "\xed\xa0\x80", 3, 0 }, { "\xed\xbf\xbf", 3, 0 },                                         /* surrogates */
    { "\xf0\x8f\xbf\xbf", 4, 0 }, { "\xf4\x90\x80\x80", 4, 0 }, { "\xf5\x80\x80\x80", 4, 0 }, { "\xff", 1, 0 },
    { "\xe2\x28\xa1", 3, 0 }, { "\xe2\x82\x28", 3, 0 }, { "\xf0\x9f\x98\x28", 4, 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(tm_utf8_length(cases[i].text, cases[i].available), cases[i].length);
}

/* ---------------------------------------------------------------------------------------------------- escaping ---- */

static void escapes(void **state) {
  (void)state;
  char out[64];
  static const struct { const char *text; uint64_t length; const char *expected; } cases[] = {
    { "plain", 5, "plain" }, { "", 0, "" }, { "a\nb\tc\rd\\", 8, "a\\nb\\tc\\rd\\\\" }, { "\0x", 2, "\\x00x" },
    { "\x1b[31m", 5, "\\x1b[31m" }, { "\x7f", 1, "\\x7f" }, { "caf\xc3\xa9", 5, "caf\xc3\xa9" }, { "\xc3", 1, "\\xc3" },
    { "\xc2\x9b", 2, "\\xc2\\x9b" }, { "a\xe2\x80\xae", 4, "a\\xe2\\x80\\xae" }, { "\xef\xbb\xbf", 3, "\\xef\\xbb\\xbf" },
    { "\xe2\x80\x94", 3, "\xe2\x80\x94" }, { "\xf3\xa0\x80\x81", 4, "\\xf3\\xa0\\x80\\x81" }, { "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(tm_text_escape(cases[i].text, cases[i].length, out, sizeof out), strlen(cases[i].expected));
    assert_string_equal(out, cases[i].expected);
  }
}

/* What Unicode lists as steering the direction of text, Bidi_Control, is never shown as it is. */
static void no_direction_mark_is_clean(void **state) {
  (void)state;
  static const char *const marks[] = {
    "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac",
    "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9",
  };
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    char out[16];
    if (tm_text_is_clean(marks[i], strlen(marks[i]))) fail_msg("mark %zu", i);
    tm_text_escape(marks[i], strlen(marks[i]), out, sizeof out);
    assert_true(out[0] == '\\' && out[1] == 'x');
  }
}

static void escape_is_bounded(void **state) {
  (void)state;
  const char text[] = "ab\x01\xc3\xa9\xe2\x82\xac tail that does not fit";
  for (uint64_t capacity = 8; capacity < 48; capacity++) {
    char out[64];
    memset(out, '#', sizeof out);
    const uint64_t used = tm_text_escape(text, sizeof text - 1, out, capacity);
    assert_true(used < capacity);
    assert_int_equal(strlen(out), used);
    for (uint64_t i = capacity; i < sizeof out; i++) assert_int_equal(out[i], '#');
    for (uint64_t i = 0; i < used;) {
      const uint32_t length = tm_utf8_length(out + i, used - i);
      assert_true(length > 0);
      i += length;
    }
  }
  char out[11];
  assert_int_equal(tm_text_escape("0123456789", 10, out, sizeof out), 10);
  assert_string_equal(out, "0123456789");
  assert_int_equal(tm_text_escape("0123456789a", 11, out, sizeof out), 10);
  assert_string_equal(out, "0123456...");
}

/* ---------------------------------------------------------------------------------------------------- patterns ---- */

static bool matches(const char *pattern, const char *text) {
  return tm_glob_match(pattern, strlen(pattern), text, strlen(text));
}

static void globs(void **state) {
  (void)state;
  static const struct { const char *pattern, *text; bool expected; } cases[] = {
    { "", "", true }, { "", "a", false }, { "*", "", true }, { "*", "abc", true }, { "a*", "abc", true }, { "*c", "abc", true },
    { "*.weight", "layers.0.weight", true }, { "*.weight", "layers.0.weights", false }, { "a*b*c", "axxbyyc", true },
    { "a*b*c", "axxbyy", false }, { "?", "", false }, { "?", "x", true }, { "layers.?.*", "layers.7.q", true },
    { "layers.?.*", "layers.17.q", false }, { "[ab]c", "bc", true }, { "[!ab]c", "bc", false }, { "[!ab]c", "zc", true },
    { "[0-9]", "5", true }, { "[0-9]", "a", false }, { "[]a]", "]", true }, { "[a", "[a", true }, { "[a", "a", false },
    { "[a-]", "-", true }, { "\\*", "*", true }, { "\\*", "x", false }, { "a\\", "a\\", true }, { "**a", "bca", true },
    { "abc", "ab", false }, { "[^x]", "y", true },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (matches(cases[i].pattern, cases[i].text) != cases[i].expected) fail_msg("%s / %s", cases[i].pattern, cases[i].text);
}

static void glob_does_not_explode(void **state) {
  (void)state;
  char text[20001];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  assert_false(matches("a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void endings(void **state) {
  (void)state;
  assert_true(tm_text_has_ending("m.gguf", ".gguf"));
  assert_true(tm_text_has_ending(".gguf.gguf", ".gguf"));
  assert_false(tm_text_has_ending(".gguf", ".gguf"));
  assert_true(tm_text_has_ending("models/m.gguf", ".gguf"));
  assert_false(tm_text_has_ending("models/.gguf", ".gguf"));
  assert_false(tm_text_has_ending("gguf", ".gguf"));
  assert_false(tm_text_has_ending("m.gguf.part", ".gguf"));
  assert_false(tm_text_has_ending("", ".gguf"));
}

/* ------------------------------------------------------------------------------------------------- suggestions ---- */

static void suggestions(void **state) {
  (void)state;
  static const char *const names[] = { "stats", "inspect", "explain", "bench", "backends", "ops" };
  const uint64_t count = sizeof names / sizeof names[0];
  assert_string_equal(tm_suggest("stat", names, count), "stats");
  assert_string_equal(tm_suggest("STATS", names, count), "stats");
  assert_string_equal(tm_suggest("insepct", names, count), "inspect");
  assert_string_equal(tm_suggest("op", names, count), "ops");
  assert_null(tm_suggest("quantize", names, count));
  assert_string_equal(tm_suggest("isn*", names, count), "inspect");
  assert_string_equal(tm_suggest("sta?z", names, count), "stats");
  assert_null(tm_suggest("xyz*", names, count));
  assert_null(tm_suggest("*", names, count));
  assert_null(tm_suggest("", names, count));
  assert_null(tm_suggest("x", names, count));
  assert_null(tm_suggest("stats", names, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(utf8_lengths), cmocka_unit_test(escapes), cmocka_unit_test(no_direction_mark_is_clean),
    cmocka_unit_test(escape_is_bounded),
    cmocka_unit_test(globs), cmocka_unit_test(glob_does_not_explode), cmocka_unit_test(suggestions), cmocka_unit_test(endings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
