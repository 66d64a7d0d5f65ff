/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "complain.h"
#include "merge_recipe.h"
#include "merge_request.h"

static tm_status parse(tm_merge_request *request, const char *text, tm_error *error) {
  *error = (tm_error)TM_CLI_ERROR_INIT;
  return tm_merge_recipe_parse("dir/r.yaml", text, strlen(text), request, error);
}

/* "what pattern model value" of rule i, or "?". */
static const char *rule_text(const tm_merge_rule_list *list, uint32_t i, char *out) {
  strcpy(out, "?");
  if (i < list->count)
    snprintf(out, 128, "%u %s %d %g", list->items[i].what, list->items[i].pattern != NULL ? list->items[i].pattern : "-",
             list->items[i].model == TM_MERGE_EVERY_MODEL ? -1 : (int)list->items[i].model, list->items[i].value);
  return out;
}

#define HEAD "models:\n  - a.safetensors\n  - {path: /x/b.gguf, name: other, weight: 0.25}\n"

static void everything_is_read(void **state) {
  (void)state;
  char             text[128];
  tm_error         error;
  tm_merge_request request;
  tm_merge_request_init(&request);
  const tm_status status = parse(&request,
                                 "# what, from what\nmethod: ties\nbase: base.gguf\n" HEAD
                                 "output: out/o.safetensors\nscale: 0.5\ndensity: [0.25, null]\nnormalize: no\nmissing: copy\n"
                                 "rows: longest\n"
                                 "other: skip\nshard_size: 5GB\ntensors:\n"
                                 "  - {match: 'l.*', weight: {a: 1, other: -2}, dtype: bf16}\n  - {match: '*:b', scale: 3}\n",
                                 &error);
  if (status != TM_OK) fail_msg("%s", error.text);
  assert_int_equal(request.method, TM_MERGE_TIES);
  assert_string_equal(request.base, "dir/base.gguf");
  assert_string_equal(request.output, "dir/out/o.safetensors");
  assert_int_equal(request.model_count, 2);
  assert_string_equal(request.models[0].path, "dir/a.safetensors");
  assert_string_equal(request.models[1].path, "/x/b.gguf");
  assert_string_equal(request.models[1].name, "other");
  assert_string_equal(rule_text(&request.usual, 0, text), "2 - 0 0.25");
  assert_string_equal(rule_text(&request.usual, 1, text), "1 - 1 0.25");
  assert_string_equal(rule_text(&request.usual, 2, text), "4 - 0 0.5");
  assert_int_equal(request.usual.count, 3);
  assert_string_equal(rule_text(&request.special, 0, text), "1 l.* 0 1");
  assert_string_equal(rule_text(&request.special, 1, text), "1 l.* 1 -2");
  assert_string_equal(rule_text(&request.special, 3, text), "4 *:b 0 3");
  assert_int_equal(request.special.items[2].format, TM_FORMAT_BF16);
  assert_int_equal(request.special.count, 4);
  assert_true(request.keeps_sum && !request.keeps_scale && !request.has_seed);
  assert_int_equal(request.missing, TM_MERGE_MISSING_COPY);
  assert_int_equal(request.rows, TM_MERGE_ROWS_LONGEST);
  assert_int_equal(request.other, TM_MERGE_OTHER_SKIP);
  assert_int_equal(request.shard_bytes, UINT64_C(5000000000));
  const tm_merge_rule *rules = NULL;
  assert_int_equal(tm_merge_request_rules(&request, &rules, &error), TM_OK);
  assert_int_equal(request.usual.count, 7);
  assert_null(rules[2].pattern);
  assert_string_equal(rules[3].pattern, "l.*");
  assert_int_equal(tm_merge_request_check(&request, &error), TM_OK);
  tm_merge_request_deinit(&request);
}

static void json_is_a_recipe(void **state) {
  (void)state;
  tm_error         error;
  tm_merge_request request;
  tm_merge_request_init(&request);
  assert_int_equal(parse(&request,
                         "{\"version\":\"1\",\"method\":\"dare\",\"seed\":18446744073709551615,\"rescale\":false,\"base\":"
                         "{\"path\":\"b\\u0061se\",\"hash\":\"0\"},\"models\":[{\"path\":\"a\",\"density\":1}]}",
                         &error),
                   TM_OK);
  assert_int_equal(request.seed, UINT64_MAX);
  assert_true(request.keeps_scale);
  assert_string_equal(request.base, "dir/base");
  tm_merge_request_deinit(&request);
}

/* Wherever it stands in the text. */
static void a_model_s_own_number_counts_more(void **state) {
  (void)state;
  char             text[128];
  tm_error         error;
  tm_merge_request request;
  tm_merge_request_init(&request);
  assert_int_equal(parse(&request, HEAD "weight: 0.5\n", &error), TM_OK);
  assert_string_equal(rule_text(&request.usual, 0, text), "1 - -1 0.5");
  assert_string_equal(rule_text(&request.usual, 1, text), "1 - 1 0.25");
  assert_int_equal(request.usual.count, 2);
  tm_merge_request_deinit(&request);
}

/* The command line says where models are, the recipe what they are called. */
static void operands_take_the_place_of_models(void **state) {
  (void)state;
  char             text[128];
  tm_error         error;
  tm_merge_request request;
  tm_merge_request_init(&request);
  request.has_operands = true;
  assert_int_equal(tm_merge_request_add_model(&request, "", "p/x.npy", NULL, &error), TM_OK);
  assert_int_equal(tm_merge_request_add_model(&request, "", "p/y.npy", NULL, &error), TM_OK);
  assert_int_equal(parse(&request, "models: [a.safetensors, {path: /x/b.gguf, name: other}]\nweight: {a: 3, y: 4}\n", &error), TM_OK);
  assert_string_equal(request.models[0].path, "p/x.npy");
  assert_string_equal(rule_text(&request.usual, 0, text), "1 - 0 3");
  assert_string_equal(rule_text(&request.usual, 1, text), "1 - 1 4");
  assert_int_equal(parse(&request, "models: [a]\n", &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "r.yaml:1:9: models: 1 model, but the command line names 2"));
  tm_merge_request_deinit(&request);
}

static void mistakes_have_places(void **state) {
  (void)state;
  static const struct { const char *recipe, *said;
  } rows[] = {
    { "", "r.yaml: an empty recipe" },
    { "linear\n", ":1:1: a recipe wants keys and values" },
    { "method: linear\nwieght: 1\n", ":2:1: unknown key \"wieght\"; did you mean \"weight\"?" },
    { "tensors:\n  - match: x\n    densty: 1\n", ":3:5: unknown key \"densty\"; did you mean \"density\"?" },
    { "merge_method: ties\n", ":1:1: unknown key \"merge_method\"; there are: models, method, base, output, weight, density, t, " },
    { HEAD "  - {path: c, wight: 1}\n", ":4:15: unknown key \"wight\"" },
    { "t: 0\nscale: 1\nt: 0.5\n", ":3:1: \"t\" is there twice" },
    { "method: lerp\n", ":1:9: method wants linear, slerp, task, ties or dare, not \"lerp\"" },
    { "missing: [skip]\n", ":1:10: missing wants fail, available, copy or skip" },
    { "method:\n", "method wants a value" },
    { "weight: .nan\n", ":1:9: weight wants a finite number" },
    { "weight: 1e999\n", "weight wants a finite number" },
    { "weight: 0x1p3\n", "weight wants a finite number" },
    { "density: 0\n", "wants a density above 0 and up to 1, not 0" },
    { "density: 1.5\n", "wants a density above 0 and up to 1, not 1.5" },
    { "t: -0.1\n", "wants a number from 0 to 1" },
    { HEAD "weight: [1, 2, 3]\n", ":4:9: weight has 3 numbers for 2 models" },
    { HEAD "weight: {a: 1, othr: 2}\n", ":4:16: weight: no model is called \"othr\"; did you mean \"other\"?" },
    { HEAD "weight: {a: 0.5, a: 0.9}\n", ":4:18: weight: dir/a.safetensors is there twice" },
    { HEAD "density: {other: 0.5, b.gguf: 0.9}\n", "density: /x/b.gguf is there twice" },
    { HEAD "tensors: [{match: x, weight: {1: 1, a: 1}}]\n", "dir/a.safetensors is there twice" },
    { HEAD "weight: {3: 1}\n", "no model is called \"3\"" },
    { "models: [a, b/a]\nweight: {a: 1}\n", "2 models are called \"a\"; call them by their numbers" },
    { "models: [{path: a, bytes: 3}]\n", "unknown key \"bytes\"" },
    { "models: a\n", ":1:9: models wants a list of files" },
    { "models: [{weight: 1}]\n", ":1:10: model wants a path" },
    { "models: [a,a,a,a,a,a,a,a,a,a,a,a,a,a,a]\n", "models can be merged at once" },
    { "tensors: [{weight: 1}]\n", "a \"match\" in every entry" },
    { "tensors: [{match: x}]\n", ":1:19: tensors wants something that is set beside each \"match\"" },
    { HEAD "weight: [0.5, 0.5]\n", ":3:44: weight: the model has one here, and another one outside of \"models\"" },
    { "models: [{path: a, density: 0.5}]\ndensity: {1: 0.25}\n", "density: the model has one here" },
    { "seed: 18446744073709551616\n", "seed wants a whole number up to 18446744073709551615" },
    { "dtype: bf61\n", ":1:8: dtype: unknown format \"bf61\"; did you mean \"bf16\"?" },
    { "seed: -1\n", "seed wants a whole number" },
    { "normalize: maybe\n", "normalize wants true or false" },
    { "shard_size: big\n", "shard_size wants a size" },
    { "method: \"lin\\0ear\"\n", "method wants linear" },
    { "method: linear\n---\nmethod: task\n", ":3:1: a second document" },
    { "method: \"linear\n", "r.yaml:2:1: found unexpected end of stream while scanning a quoted scalar" },
    { "method: [linear\nbase: x", "r.yaml:" },
    { "tensors:\n  - match: *norm*\n", "r.yaml:2:17: did not find expected alphabetic" },
    { "tensors:\n  - match: *norm*\n", "a pattern that begins with * needs quotes" },
    { "tensors:\n  - match: *norm\n", "undefined alias; a pattern that begins with * needs quotes" },
    { "method: \xff\n", "r.yaml: byte 8: " },
    { "{\"base\": \"\\ud83d\\ude00\"}", "write a character beyond \\uffff itself, or as \\U and 8 digits" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tm_error         error;
    tm_merge_request request;
    tm_merge_request_init(&request);
    const tm_status status = parse(&request, rows[i].recipe, &error);
    if (status != TM_ERROR_ARGUMENT) fail_msg("%s: accepted", rows[i].recipe);
    if (strstr(error.text, rows[i].said) == NULL) fail_msg("\"%s\" lacks \"%s\"", error.text, rows[i].said);
    tm_merge_request_deinit(&request);
  }
}

/* A text of a few lines must not stand for millions of rules. */
static void references_stay_small(void **state) {
  (void)state;
  static char      text[400000];
  tm_error         error;
  tm_merge_request request;
  char            *end = text + sprintf(text, "models: [a]\ntensors: [&a {match: x, weight: 1}");
  for (int i = 0; i < 70000; i++) end = (char *)memcpy(end, ", *a", 5) + 4;
  strcpy(end, "]\n");
  tm_merge_request_init(&request);
  assert_int_equal(parse(&request, text, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "more than 65536 rules"));
  tm_merge_request_deinit(&request);
}

/* What a reader of YAML takes the square of a count for: a second here would be minutes with the largest recipe. */
static void bulk_is_refused_at_once(void **state) {
  (void)state;
  static const struct { const char *head, *part, *said;
  } rows[] = {
    { "models: ", "[", "r.yaml:1:40: nested too deep" },        { "", "{a: ", "nested too deep" },
    { "", "- ", "nested too deep" },                            { "models: [", "&a x, ", "too many names of nodes" },
    { "%YAML 1.1\n", "%TAG !a! x\n", "more than 16 directives" },
  };
  static char text[120000];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tm_error         error;
    tm_merge_request request;
    char            *end = text + sprintf(text, "%s", rows[i].head);
    while (end < text + sizeof text - 32) end += sprintf(end, "%s", rows[i].part);
    tm_merge_request_init(&request);
    assert_int_equal(parse(&request, text, &error), TM_ERROR_ARGUMENT);
    if (strstr(error.text, rows[i].said) == NULL) fail_msg("\"%s\" lacks \"%s\"", error.text, rows[i].said);
    tm_merge_request_deinit(&request);
  }
}

static void words_of_the_command_line(void **state) {
  (void)state;
  static const struct { uint32_t what; const char *text, *said;
  } rows[] = {
    { TM_MERGE_SET_WEIGHT, "a=0.5,", "\"\" names no model" },
    { TM_MERGE_SET_WEIGHT, "a=0.5,1", "\"1\" names no model" },
    { TM_MERGE_SET_WEIGHT, "0.5,nan", "\"nan\" is no finite number" },
    { TM_MERGE_SET_WEIGHT, "a=inf", "\"inf\" is no finite number" },
    { TM_MERGE_SET_WEIGHT, "", "\"\" is no finite number" },
    { TM_MERGE_SET_WEIGHT, "1,2,3", "3 numbers for 2 models" },
    { TM_MERGE_SET_WEIGHT, "c=1", "no model is called \"c\"" },
    { TM_MERGE_SET_T, "0.1,0.2", "wants one number, not 2" },
    { TM_MERGE_SET_T, "a=0.1", "is no finite number" },
    { TM_MERGE_SET_DENSITY, "1,0", "above 0 and up to 1" },
    { TM_MERGE_SET_FORMAT, "f33", "unknown format \"f33\"" },
  };
  tm_error         error = TM_CLI_ERROR_INIT;
  tm_merge_request request;
  tm_merge_request_init(&request);
  assert_int_equal(tm_merge_request_add_model(&request, "", "m/a.safetensors", NULL, &error), TM_OK);
  assert_int_equal(tm_merge_request_add_model(&request, "", "m/b.v2.gguf", NULL, &error), TM_OK);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(tm_merge_request_add_text(&request, "--x", NULL, rows[i].what, rows[i].text, &error), TM_ERROR_ARGUMENT);
    if (strstr(error.text, rows[i].said) == NULL) fail_msg("\"%s\" lacks \"%s\"", error.text, rows[i].said);
  }
  uint32_t model = 9;
  assert_int_equal(tm_merge_request_find_model(&request, "", "b.v2", &model, &error), TM_OK);
  assert_int_equal(model, 1);
  assert_int_equal(tm_merge_request_find_model(&request, "", "1", &model, &error), TM_OK);
  assert_int_equal(model, 0);
  tm_merge_request_deinit(&request);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(everything_is_read), cmocka_unit_test(json_is_a_recipe),
                                      cmocka_unit_test(a_model_s_own_number_counts_more),
                                      cmocka_unit_test(operands_take_the_place_of_models), cmocka_unit_test(mistakes_have_places),
                                      cmocka_unit_test(references_stay_small), cmocka_unit_test(bulk_is_refused_at_once),
                                      cmocka_unit_test(words_of_the_command_line) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
