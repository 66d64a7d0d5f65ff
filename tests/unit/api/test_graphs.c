/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as an application builds, asks, prints, saves, loads and binds them. */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "api_case.h"

static counting_heap heap;
static tm_context *context;
static scratch files;

static int open_all(void **state) {
  (void)state;
  const tm_context_options options = options_with(&heap);
  if (!scratch_init(&files)) return -1;
  return tm_context_create(&options, &context, NULL);
}

static int close_all(void **state) {
  (void)state;
  tm_context_destroy(context);
  scratch_deinit(&files);
  heap_is_empty(&heap);
  return 0;
}

static void fails(tm_status found, tm_status expected, const tm_error *error, const char *words) {
  if (found != expected) fail_msg("status %d, expected %d: %s", (int)found, (int)expected, error->text);
  if (strstr(error->text, words) == NULL) fail_msg("'%s' does not say '%s'", error->text, words);
}

static const tm_operand vector = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 } };
static float weights[4] = { 1, 2, 3, 4 };

static tm_tensor *wrap_weights(void) {
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_wrap(context, &vector, weights, sizeof weights, &tensor, NULL), TM_OK);
  return tensor;
}

/* state <- state + x * w; y is its new content, head the first half of it. */
static tm_graph *build(tm_tensor *w) {
  tm_graph *graph = NULL;
  uint32_t x, c, s, product, sum, head;
  const tm_operand half = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 2 } };
  assert_int_equal(tm_graph_create(context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &vector, &x, NULL), TM_OK);
  assert_int_equal(tm_graph_constant(graph, "w", w, &c, NULL), TM_OK);
  assert_int_equal(tm_graph_state(graph, "s", &vector, &s, NULL), TM_OK);
  assert_int_equal(tm_graph_node(graph, "product", TM_OP_MUL, NULL, 0, (const uint32_t[]){ x, c }, 2, NULL, 1, &product, NULL),
                   TM_OK);
  assert_int_equal(tm_graph_node(graph, NULL, TM_OP_ADD, NULL, 0, (const uint32_t[]){ s, product }, 2, NULL, 1, &sum, NULL), TM_OK);
  assert_int_equal(tm_graph_view(graph, sum, &half, 0, &head, NULL), TM_OK);
  assert_int_equal(tm_graph_carry(graph, s, sum, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "y", sum, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "head", head, NULL), TM_OK);
  return graph;
}

static void graphs_tell_what_is_in_them(void **state) {
  (void)state;
  tm_tensor *w = wrap_weights();
  tm_graph *graph = build(w);
  tm_graph_description whole = { .struct_size = sizeof whole };
  tm_graph_describe(graph, &whole);
  assert_int_equal(whole.value_count, 6);
  assert_int_equal(whole.node_count, 2);
  assert_int_equal(whole.input_count + whole.constant_count + whole.state_count, 3);
  assert_int_equal(whole.output_count, 2);
  assert_int_equal(whole.unbound_count + whole.sealed, 0);
  uint32_t s = TM_NO_VALUE;
  assert_int_equal(tm_graph_find(graph, "s", &s), TM_OK);
  assert_int_equal(tm_graph_find(graph, "product", &s), TM_ERROR_NOT_FOUND);
  tm_value_description value = { .struct_size = sizeof value };
  assert_int_equal(tm_graph_value_describe(graph, s, &value), TM_OK);
  assert_int_equal(value.kind, TM_VALUE_STATE);
  assert_string_equal(value.name, "s");
  assert_int_equal(value.carry, 4);
  assert_int_equal(value.node, TM_NO_NODE);
  assert_int_equal(tm_graph_value_describe(graph, 5, &value), TM_OK);
  assert_int_equal(value.kind, TM_VALUE_VIEW);
  assert_int_equal(value.base, 4);
  assert_int_equal(tm_graph_value_describe(graph, 6, &value), TM_END);
  tm_node_description node = { .struct_size = sizeof node };
  assert_int_equal(tm_graph_node_describe(graph, 0, &node), TM_OK);
  assert_string_equal(node.name, "product");
  assert_string_equal(node.op_name, "mul");
  assert_int_equal(node.inputs[1], 1);
  assert_int_equal(node.outputs[0], 3);
  assert_int_equal(tm_graph_node_describe(graph, 2, &node), TM_END);
  tm_graph_output_description output = { .struct_size = sizeof output };
  assert_int_equal(tm_graph_output_describe(graph, 1, &output), TM_OK);
  assert_string_equal(output.name, "head");
  assert_int_equal(tm_graph_output_describe(graph, 2, &output), TM_END);
  tm_graph_destroy(graph);
  tm_graph_destroy(NULL);
  tm_tensor_destroy(w);
}

static void graphs_are_printed(void **state) {
  (void)state;
  tm_tensor *w = wrap_weights();
  tm_graph *graph = build(w);
  tm_error error = { .struct_size = sizeof error };
  char text[4096];
  uint64_t length = 0, again = 0;
  static const char *const words[] = { "%3 = mul(%0, %1)", "v5 -> o1", "\"tensormorph_graph\": 1" };
  for (uint32_t form = TM_GRAPH_TEXT; form <= TM_GRAPH_JSON; form++) {
    assert_int_equal(tm_graph_print(graph, form, NULL, 0, &length, &error), TM_OK);
    assert_int_equal(tm_graph_print(graph, form, text, sizeof text, &again, &error), TM_OK);
    assert_int_equal(length, again);
    assert_int_equal(strlen(text), length);
    assert_non_null(strstr(text, words[form]));
  }
  fails(tm_graph_print(graph, 3, text, sizeof text, &length, &error), TM_ERROR_ARGUMENT, &error, "form 3");
  fails(tm_graph_print(graph, TM_GRAPH_DOT, NULL, 9, &length, &error), TM_ERROR_ARGUMENT, &error, "no place");
  tm_graph_destroy(graph);
  tm_tensor_destroy(w);
}

static void wrong_calls_are_errors(void **state) {
  (void)state;
  tm_tensor *w = wrap_weights();
  tm_graph *graph = build(w);
  tm_context *other = NULL;
  tm_graph *stranger = NULL;
  tm_error error = { .struct_size = sizeof error };
  uint32_t value = 0;
  const tm_operand deep = { .format = TM_FORMAT_F32, .rank = 9, .dims = { 1 } };
  const uint32_t x = 0;
  fails(tm_graph_input(graph, "deep", &deep, &value, &error), TM_ERROR_ARGUMENT, &error, "input 'deep': rank 9");
  fails(tm_graph_input(graph, "\x1b[31m", &deep, &value, &error), TM_ERROR_ARGUMENT, &error, "input '\\x1b[31m': rank 9");
  fails(tm_graph_state(graph, "none", NULL, &value, &error), TM_ERROR_ARGUMENT, &error, "state 'none': there is no layout");
  fails(tm_graph_view(graph, 0, &deep, 0, &value, &error), TM_ERROR_ARGUMENT, &error, "a view of value 0: rank 9");
  fails(tm_graph_constant(graph, "c", NULL, &value, &error), TM_ERROR_ARGUMENT, &error, "without a tensor");
  fails(tm_graph_node(graph, NULL, TM_OP_NEG, NULL, 0, &x, 1, NULL, 1, NULL, &error), TM_ERROR_ARGUMENT, &error, "without a place");
  assert_int_equal(tm_context_create(NULL, &other, NULL), TM_OK);
  assert_int_equal(tm_graph_create(other, &stranger, NULL), TM_OK);
  fails(tm_graph_constant(stranger, "c", w, &value, &error), TM_ERROR_ARGUMENT, &error, "another context");
  tm_graph_destroy(stranger);
  tm_context_destroy(other);
  tm_graph_destroy(graph);
  tm_tensor_destroy(w);
}

static void saved_graphs_come_back_without_bytes(void **state) {
  (void)state;
  tm_tensor *w = wrap_weights();
  tm_graph *graph = build(w), *back = NULL;
  tm_error error = { .struct_size = sizeof error };
  const char *path = scratch_path(&files, "graph.json");
  assert_int_equal(tm_graph_save(graph, path, TM_GRAPH_SAVE_DIGESTS, &error), TM_OK);
  assert_int_equal(tm_graph_save(graph, path, TM_GRAPH_SAVE_DIGESTS, &error), TM_OK);   /* over the first one */
  assert_int_equal(tm_graph_load(context, path, &back, &error), TM_OK);
  tm_graph_description whole = { .struct_size = sizeof whole };
  tm_graph_describe(back, &whole);
  assert_int_equal(whole.unbound_count, 1);
  uint32_t c = TM_NO_VALUE;
  assert_int_equal(tm_graph_find(back, "w", &c), TM_OK);
  weights[3] = 5;
  fails(tm_graph_bind(back, c, w, &error), TM_ERROR_ARGUMENT, &error, "constant 'w': the tensor's SHA-256 begins with");
  weights[3] = 4;
  assert_int_equal(tm_graph_bind(back, c, w, &error), TM_OK);
  fails(tm_graph_bind(back, c, w, &error), TM_ERROR_ARGUMENT, &error, "has its bytes already");
  fails(tm_graph_bind(back, 0, w, &error), TM_ERROR_ARGUMENT, &error, "input 'x' is no constant");
  tm_graph_destroy(back);
  tm_graph_destroy(graph);
  tm_tensor_destroy(w);
}

static void files_that_cannot_be_are_errors(void **state) {
  (void)state;
  tm_tensor *w = wrap_weights();
  tm_graph *graph = build(w), *back = NULL;
  tm_error error = { .struct_size = sizeof error };
  fails(tm_graph_save(graph, NULL, 0, &error), TM_ERROR_ARGUMENT, &error, "no path");
  fails(tm_graph_save(graph, "x", 0x80, &error), TM_ERROR_ARGUMENT, &error, "unknown flags 0x80");
  fails(tm_graph_save(graph, files.folder, 0, &error), TM_ERROR_IO, &error, "cannot be written");
  fails(tm_graph_save(graph, "/dev/null", 0, &error), TM_ERROR_IO, &error, "/dev/null: cannot be written");
  fails(tm_graph_save(graph, scratch_path(&files, "none/graph.json"), 0, &error), TM_ERROR_IO, &error, "cannot be written");
  fails(tm_graph_load(context, scratch_path(&files, "absent"), &back, &error), TM_ERROR_NOT_FOUND, &error, "absent");
  fails(tm_graph_load(context, files.folder, &back, &error), TM_ERROR_IO, &error, "");
  fails(tm_graph_load(context, NULL, &back, &error), TM_ERROR_ARGUMENT, &error, "");
  static const char damaged[] = "{\"tensormorph_graph\": 1, \"items\": [\n7";
  const char *path = scratch_write(&files, "damaged.json", damaged, sizeof damaged - 1);
  fails(tm_graph_load(context, path, &back, &error), TM_ERROR_CORRUPT, &error, "damaged.json: line 2: found 7");
  assert_null(back);
  tm_graph_destroy(graph);
  tm_tensor_destroy(w);
}

/* A sparse file, so that nothing is written; it is refused before it is read. */
static void files_beyond_the_limit_are_refused(void **state) {
  (void)state;
  const char *path = scratch_write(&files, "large.json", "{", 1);
  tm_graph *graph = NULL;
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(truncate(path, (1LL << 30) + 1), 0);
  fails(tm_graph_load(context, path, &graph, &error), TM_ERROR_LIMIT, &error, "expected at most 1073741824");
}

/* New files get the mode that the user's mask leaves, and nothing stays beside them. */
static void saved_files_are_ordinary_files(void **state) {
  (void)state;
  tm_tensor *w = wrap_weights();
  tm_graph *graph = build(w);
  scratch own;
  assert_true(scratch_init(&own));
  const mode_t mask = umask(027);
  const char *path = scratch_path(&own, "graph.json");
  assert_int_equal(tm_graph_save(graph, path, 0, NULL), TM_OK);
  (void)umask(mask);
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  assert_int_equal(found.st_mode & 0777, 0640);
  DIR *folder = opendir(own.folder);
  uint32_t count = 0;
  while (readdir(folder) != NULL) count++;
  (void)closedir(folder);
  assert_int_equal(count, 3);
  scratch_deinit(&own);
  tm_graph_destroy(graph);
  tm_tensor_destroy(w);
}

/* Constants that lie in a file: their digest notices when the file changes under them. */
static void digests_of_changed_files_are_not_kept(void **state) {
  (void)state;
  static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
  tm_checkpoint *checkpoint = NULL;
  tm_tensor *w = NULL;
  tm_error error = { .struct_size = sizeof error };
  tm_context *mapping = NULL;
  tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_MAP_FILES, .thread_count = 1 };
  assert_int_equal(tm_context_create(&options, &mapping, NULL), TM_OK);
  char path[1024];
  (void)snprintf(path, sizeof path, "%s", write_checkpoint(&files, "w.safetensors", header, 16, 0));
  assert_int_equal(tm_checkpoint_open(mapping, path, 0, &checkpoint, &error), TM_OK);
  assert_int_equal(tm_checkpoint_load(checkpoint, 0, &w, &error), TM_OK);
  tm_graph *graph = NULL;
  uint32_t value;
  assert_int_equal(tm_graph_create(mapping, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_constant(graph, "w", w, &value, &error), TM_OK);
  const char *to = scratch_path(&files, "of-file.json");
  assert_int_equal(tm_graph_save(graph, to, TM_GRAPH_SAVE_DIGESTS, &error), TM_OK);
  assert_int_equal(truncate(path, 40), 0);
  assert_int_equal(tm_graph_save(graph, to, TM_GRAPH_SAVE_DIGESTS, &error), TM_ERROR_CHANGED);
  tm_graph_destroy(graph);
  tm_tensor_destroy(w);
  tm_checkpoint_close(checkpoint);
  tm_context_destroy(mapping);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(graphs_tell_what_is_in_them),
    cmocka_unit_test(graphs_are_printed),
    cmocka_unit_test(wrong_calls_are_errors),
    cmocka_unit_test(saved_graphs_come_back_without_bytes),
    cmocka_unit_test(files_that_cannot_be_are_errors),
    cmocka_unit_test(files_beyond_the_limit_are_refused),
    cmocka_unit_test(saved_files_are_ordinary_files),
    cmocka_unit_test(digests_of_changed_files_are_not_kept),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
