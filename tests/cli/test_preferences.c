/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "complain.h"
#include "config_file.h"
#include "preferences.h"

typedef struct seen {
  unsigned lines[8];
  char     pairs[8][64];
  unsigned count;
} seen;

static tm_status note_entry(void *context, unsigned line, const char *key, const char *value, tm_error *error) {
  (void)error;
  seen *s = context;
  s->lines[s->count] = line;
  snprintf(s->pairs[s->count++], sizeof s->pairs[0], "%s|%s", key, value);
  return TM_OK;
}

static tm_status parse(const char *text, seen *s, tm_error *error) {
  char copy[512];
  strcpy(copy, text);
  s->count = 0;
  return tm_config_parse("config", copy, strlen(copy), note_entry, s, error);
}

static void reads_assignments(void **state) {
  (void)state;
  seen     s;
  tm_error error = TM_CLI_ERROR_INIT;
  assert_int_equal(parse("# comment\n\n  threads = 2 \r\n\ta.b=c = d # e\nempty =\nlast=1", &s, &error), TM_OK);
  assert_int_equal(s.count, 4);
  assert_string_equal(s.pairs[0], "threads|2");
  assert_int_equal(s.lines[0], 3);
  assert_string_equal(s.pairs[1], "a.b|c = d # e");
  assert_string_equal(s.pairs[2], "empty|");
  assert_string_equal(s.pairs[3], "last|1");
  assert_int_equal(s.lines[3], 6);
}

static void bad_lines_have_numbers(void **state) {
  (void)state;
  seen     s;
  tm_error error = TM_CLI_ERROR_INIT;
  assert_int_equal(parse("threads = 1\nnonsense\n", &s, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "config:2: expected \"key = value\", found \"nonsense\""));
  assert_int_equal(parse("\n = 1\n", &s, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "config:2: no key"));
  char zero[] = "a = 1\0b = 2\n";
  assert_int_equal(tm_config_parse("config", zero, sizeof zero - 1, note_entry, &s, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "config:1: a NUL byte"));
}

static void write_config(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

#define CONFIG TM_BINARY_DIR "/tests/test_preferences.config"

static void later_layers_win(void **state) {
  (void)state;
  tm_preferences p;
  tm_error       error = TM_CLI_ERROR_INIT;
  tm_arguments   arguments;
  int            next = 0;
  write_config(
      CONFIG,
      "device = one, two\nno_device = three\nthreads = 3\nmax-memory = 1K\nx.y = config\nx.z = config\nquiet = yes\n");
  char *environment[] = { "TENSORMORPH_THREADS=4",
                          "TENSORMORPH_DEVICE=four,five",
                          "TENSORMORPH_ACCEPT=",
                          "PATH=/",
                          "TENSORMORPH_COLOR=0",
                          "TENSORMORPH_X_Y=variable",
                          "TENSORMORPH_PLUGIN=/a:/b",
                          "TENSORMORPH_PLUGIN_PATH=/p",
                          NULL };
  char *words[] = { "--threads=5", "--set", "x.y=flag", "--accept", "N1", "--plugin", "/c:d", NULL };
  tm_preferences_init(&p);
  assert_int_equal(tm_preferences_load_config(&p, CONFIG, &error), TM_OK);
  assert_int_equal(p.thread_count, 3);
  assert_int_equal(tm_preferences_load_environment(&p, environment, &error), TM_OK);
  assert_int_equal(p.thread_count, 4);
  assert_int_equal(p.plugins.count, 2);
  assert_int_equal(tm_arguments_init(&arguments, 7, &error), TM_OK);
  assert_int_equal(tm_arguments_parse(&arguments, 7, words, 0, false, NULL, tm_common_flags, &next, &error), TM_OK);
  assert_int_equal(tm_preferences_load_arguments(&p, &arguments, &error), TM_OK);
  assert_int_equal(p.thread_count, 5);
  assert_int_equal(p.max_memory_bytes, 1024);
  assert_int_equal(p.worst_numerics_plus_one, 2);
  assert_int_equal(p.color, TM_CHOICE_NO);
  assert_true(p.quiet);
  assert_int_equal(p.devices.count, 2);
  assert_string_equal(p.devices.names[0], "four");
  assert_string_equal(p.devices.names[1], "five");
  assert_int_equal(p.excluded_devices.count, 1);
  assert_int_equal(p.plugins.count, 1);
  assert_string_equal(p.plugins.names[0], "/c:d");
  assert_int_equal(p.setting_count, 2);
  assert_string_equal(p.settings[0].setting.value, "flag");
  assert_string_equal(p.settings[1].setting.value, "config");
  assert_int_equal(p.variable_count, 1);
  assert_string_equal(p.variables[0].name, "TENSORMORPH_X_Y");
  /* what the environment says of a backend's option is weaker than the flag */
  assert_int_equal(tm_preferences_add_setting(&p, TM_LAYER_ENVIRONMENT, "x", "y", "variable", &error), TM_OK);
  assert_int_equal(tm_preferences_add_setting(&p, TM_LAYER_ENVIRONMENT, "x", "z", "variable", &error), TM_OK);
  assert_string_equal(p.settings[0].setting.value, "flag");
  assert_string_equal(p.settings[1].setting.value, "variable");
  tm_arguments_deinit(&arguments);
  tm_preferences_deinit(&p);
}

static void says_where_it_is_wrong(void **state) {
  (void)state;
  static const struct { const char *config, *said;
  } rows[] = { { "\nthreds = 2\n", ":2: unknown key \"threds\"; did you mean \"threads\"?" },
               { "threads = two\n", ":1: threads wants a whole number" },
               { "help = 1\n", "unknown key \"help\"" },
               { ".x = 1\n", "BACKEND.OPTION" },
               { "color = maybe\n", "yes or no" } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tm_preferences p;
    tm_error       error = TM_CLI_ERROR_INIT;
    write_config(CONFIG, rows[i].config);
    tm_preferences_init(&p);
    assert_int_equal(tm_preferences_load_config(&p, CONFIG, &error), TM_ERROR_ARGUMENT);
    if (strstr(error.text, rows[i].said) == NULL) fail_msg("\"%s\" lacks \"%s\"", error.text, rows[i].said);
    tm_preferences_deinit(&p);
  }
  tm_preferences p;
  tm_error       error = TM_CLI_ERROR_INIT;
  char          *environment[] = { "TENSORMORPH_THREADS=many", NULL };
  tm_preferences_init(&p);
  assert_int_equal(tm_preferences_load_environment(&p, environment, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "TENSORMORPH_THREADS wants a whole number, not \"many\""));
  tm_preferences_deinit(&p);
}

static void missing_files_are_no_error(void **state) {
  (void)state;
  tm_preferences p;
  tm_error       error = TM_CLI_ERROR_INIT;
  tm_preferences_init(&p);
  assert_int_equal(tm_preferences_load_config(&p, TM_BINARY_DIR "/no/such/file", &error), TM_OK);
  assert_int_equal(tm_preferences_load_config(&p, TM_BINARY_DIR, &error), TM_ERROR_IO);
  tm_preferences_deinit(&p);
}

static void knows_where_the_file_lies(void **state) {
  (void)state;
  char path[64];
  assert_true(tm_preferences_config_path("/x", "/home/u", path, sizeof path));
  assert_string_equal(path, "/x/tensormorph/config");
  assert_true(tm_preferences_config_path("relative", "/home/u", path, sizeof path));
  assert_string_equal(path, "/home/u/.config/tensormorph/config");
  assert_false(tm_preferences_config_path(NULL, NULL, path, sizeof path));
  assert_false(tm_preferences_config_path("/x", NULL, path, 5));
  assert_true(tm_preferences_state_path("/x", "/home/u", path, sizeof path));
  assert_string_equal(path, "/x/tensormorph");
  assert_true(tm_preferences_state_path("relative", "/home/u", path, sizeof path));
  assert_string_equal(path, "/home/u/.local/state/tensormorph");
  assert_false(tm_preferences_state_path(NULL, NULL, path, sizeof path));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_assignments),          cmocka_unit_test(bad_lines_have_numbers),
    cmocka_unit_test(later_layers_win),           cmocka_unit_test(says_where_it_is_wrong),
    cmocka_unit_test(missing_files_are_no_error), cmocka_unit_test(knows_where_the_file_lies)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
