/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "arguments.h"
#include "complain.h"
#include "nearest_name.h"

static const tm_flag own[] = {
  { "sort", 0, TM_FLAG_TEXT, false, "COLUMN", "" }, { "top", 0, TM_FLAG_COUNT, false, "N", "" },
  { "size", 0, TM_FLAG_SIZE, false, "SIZE", "" },   { "csv", 'c', TM_FLAG_SWITCH, false, NULL, "" },
  { "output", 'o', TM_FLAG_TEXT, false, "FILE", "" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL } };

typedef struct parsed {
  tm_arguments arguments;
  tm_error     error;
  tm_status    status;
  int          next;
} parsed;

static parsed parse(char *const *words, bool stop) {
  parsed result = { .error = TM_CLI_ERROR_INIT };
  int    count = 0;
  while (words[count] != NULL) count++;
  assert_int_equal(tm_arguments_init(&result.arguments, count, &result.error), TM_OK);
  result.status =
      tm_arguments_parse(&result.arguments, count, words, 0, stop, own, tm_common_flags, &result.next, &result.error);
  return result;
}

#define PARSE(...) parse((char *[]){ __VA_ARGS__, NULL }, false)

static void options_stand_anywhere(void **state) {
  (void)state;
  parsed p = PARSE("a", "--sort=x", "b", "--top", "7", "-cq", "--", "--sort", "-");
  assert_int_equal(p.status, TM_OK);
  assert_int_equal(p.arguments.operand_count, 4);
  assert_string_equal(p.arguments.operands[2], "--sort");
  assert_string_equal(p.arguments.operands[3], "-");
  assert_string_equal(tm_arguments_value(&p.arguments, "sort"), "x");
  assert_int_equal(tm_arguments_count(&p.arguments, "top", 1), 7);
  assert_int_equal(tm_arguments_count(&p.arguments, "threads", 1), 1);
  assert_true(tm_arguments_has(&p.arguments, "csv") && tm_arguments_has(&p.arguments, "quiet"));
  assert_false(tm_arguments_has(&p.arguments, "json"));
  tm_arguments_deinit(&p.arguments);
}

static void repeats_and_negations(void **state) {
  (void)state;
  const char *values[8];
  parsed p = PARSE("--device", "x", "--device=y", "--color", "--no-color", "--size", "2K", "--size", "3K");
  assert_int_equal(p.status, TM_OK);
  assert_int_equal(tm_arguments_all(&p.arguments, "device", values), 2);
  assert_string_equal(values[1], "y");
  assert_string_equal(tm_arguments_value(&p.arguments, "color"), "0");
  assert_false(tm_arguments_has(&p.arguments, "color"));
  assert_int_equal(tm_arguments_size(&p.arguments, "size", 0), 3072);
  tm_arguments_deinit(&p.arguments);
}

static void letters_take_values(void **state) {
  (void)state;
  const char *values[8];
  parsed p = PARSE("-o", "a", "x", "-ob", "-co", "-d", "-c");
  assert_int_equal(p.status, TM_OK);
  assert_int_equal(tm_arguments_all(&p.arguments, "output", values), 3);
  assert_string_equal(values[0], "a");
  assert_string_equal(values[1], "b");
  assert_string_equal(values[2], "-d");
  assert_int_equal(p.arguments.operand_count, 1);
  assert_true(tm_arguments_has(&p.arguments, "csv"));
  tm_arguments_deinit(&p.arguments);
}

static void stops_at_the_command(void **state) {
  (void)state;
  char *words[] = { "--json", "--threads", "2", "stats", "--top", "1", NULL };
  parsed p = parse(words, true);
  assert_int_equal(p.status, TM_OK);
  assert_int_equal(p.next, 3);
  assert_int_equal(p.arguments.operand_count, 0);
  tm_arguments_deinit(&p.arguments);
}

static void complains_and_suggests(void **state) {
  (void)state;
  static const struct { const char *word, *value, *said;
  } rows[] = { { "--sotr", NULL, "did you mean --sort?" },
               { "--devices", NULL, "did you mean --device?" },
               { "--xyzzyq", NULL, "--help lists all" },
               { "--top", "x", "--top wants a whole number, not \"x\"" },
               { "--top", NULL, "wants a value" },
               { "--csv=1", NULL, "takes no value" },
               { "--accept", "N9", "N0, N1, N2 or N3" },
               { "--size", "1Q", "a size" },
               { "-z", NULL, "unknown option -z" },
               { "--top", "4294967296", "a whole number" },
               { "--sort=", NULL, "a value" },
               { "-o", NULL, "-o wants a value (FILE)" },
               { "-o", "", "-o wants a value" } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char *words[] = { (char *)(uintptr_t)rows[i].word, (char *)(uintptr_t)rows[i].value, NULL };
    parsed p = parse(words, false);
    assert_int_equal(p.status, TM_ERROR_ARGUMENT);
    if (strstr(p.error.text, rows[i].said) == NULL) fail_msg("\"%s\" lacks \"%s\"", p.error.text, rows[i].said);
    tm_arguments_deinit(&p.arguments);
  }
}

static void finds_the_nearest_name(void **state) {
  (void)state;
  assert_int_equal(tm_name_distance("stats", "stats"), 0);
  assert_int_equal(tm_name_distance("stats", "stast"), 1);
  assert_int_equal(tm_name_distance("Stats", "sTATS"), 0);
  assert_int_equal(tm_name_distance("", "abc"), 3);
  assert_int_equal(tm_name_distance("no_device", "no-device"), 0);
  tm_nearest_name nearest;
  tm_nearest_name_init(&nearest, "matmull");
  tm_nearest_name_offer(&nearest, "max");
  tm_nearest_name_offer(&nearest, "matmul");
  tm_nearest_name_offer(&nearest, "matmul_scaled");
  assert_string_equal(nearest.best, "matmul");
  tm_nearest_name_init(&nearest, "zzz");
  tm_nearest_name_offer(&nearest, "matmul");
  assert_null(nearest.best);
  tm_nearest_name_init(&nearest, "foo");
  tm_nearest_name_offer(&nearest, "f64");
  assert_null(nearest.best);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(options_stand_anywhere), cmocka_unit_test(repeats_and_negations),
                                      cmocka_unit_test(letters_take_values),
                                      cmocka_unit_test(stops_at_the_command), cmocka_unit_test(complains_and_suggests),
                                      cmocka_unit_test(finds_the_nearest_name) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
