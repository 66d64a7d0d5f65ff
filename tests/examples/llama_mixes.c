/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_mixes MODEL BACKEND...: examples/llama's network with each of several backends at random prices, so that they share the
 * nodes in ever other ways.  Each backend is a built-in's name or a plugin's file.  Whatever the mix, the logits are those of the
 * scalar reference to within 1e-4 of the largest, and the tokens the same wherever the two best are further apart than that.
 * Exit 77: skipped.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "fakes/faulty_case.h"
#include "base/dynamic_library.h"

#include "llama/network.h"

#define MOST_BACKENDS 3u
#define MIXES 8u
#define STEPS 24u
#define TOLERANCE 1e-4f

typedef struct story {
  float   *logits;              /* [STEPS][vocabulary] */
  int32_t  tokens[STEPS];
  uint32_t nodes[MOST_BACKENDS + 1];    /* that each backend, and the reference, has in the plan */
} story;

typedef struct mixture {
  tm_accelerator_backend_plugin tables[MOST_BACKENDS];
  fault_plan  plans[MOST_BACKENDS];
  char        names[MOST_BACKENDS][64];
  char        paths[MOST_BACKENDS][512];
  uint32_t    count;
} mixture;

static tm_status tell_environment(void *context, tm_string key, tm_string *out_value) {
  (void)context;
  const char *library = getenv("TENSORMORPH_WEBGPU_LIBRARY");
  const char *value = "0";
  if (key.length == 7 && memcmp(key.data, "library", 7) == 0) value = library != NULL ? library : "";
  if (key.length == 3 && memcmp(key.data, "isa", 3) == 0) value = "auto";
  *out_value = (tm_string){ value, strlen(value) };
  return TM_OK;
}

static const tm_plugin_header *header_of(const char *backend) {
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++)
    if (strcmp(tm_builtin_plugins[i].name, backend) == 0) return tm_builtin_plugins[i].query(TM_ABI_MAJOR, TM_ABI_MINOR);
  void *library = NULL;
  tm_plugin_query_fn query = NULL;
  tm_error error = TM_ERROR_INIT;
  if (tm_library_open(backend, &library, &error) == TM_OK &&
      tm_library_symbol(library, backend, "tm_plugin_query", &query, &error) == TM_OK)
    return query(TM_ABI_MAJOR, TM_ABI_MINOR);
  print_message("%s: %s\n", backend, error.text);
  return NULL;
}

/* The near mask is for those that work in the host's memory. */
static bool wear_mask(mixture *m, const char *backend) {
  const uint32_t i = m->count;
  const tm_plugin_header *header = header_of(backend);
  if (header == NULL || tm_plugin_table_accept(header, NULL, &m->tables[i], NULL) != TM_OK) return false;
  const char *form = strcmp(backend, "cpu") == 0 ? "near" : "far";
  snprintf(m->paths[i], sizeof m->paths[i], "%s/tests/fakes/mask_%s_%u.so", TM_BINARY_DIR, form, i + 1);
  const char *path = m->paths[i];
  tm_context *context = open_context(&(tm_context_options){ .struct_size = sizeof(tm_context_options), .plugin_paths = &path, .plugin_path_count = 1 });
  snprintf(m->names[i], sizeof m->names[i], "%s", backend_of(context, path).name);
  tm_context_destroy(context);
  m->plans[i] = (fault_plan){ .inner = &m->tables[i], .keeps_costs = 1, .config_get = tell_environment, .uuid = { { 1, (uint8_t)i } } };
  m->count++;
  return true;
}

static tm_context *open_mixture(mixture *m, uint64_t seed) {
  static const char *const excluded[] = { "cpu", "webgpu" };
  const char *paths[MOST_BACKENDS];
  tm_named_pointer pointers[MOST_BACKENDS];
  for (uint32_t i = 0; i < m->count; i++) {
    m->plans[i].price_seed = seed * 31 + i + 1;
    paths[i] = m->paths[i];
    pointers[i] = (tm_named_pointer){ m->names[i], FAULT_PLAN_KEY, &m->plans[i] };
  }
  const tm_context_options options = { .struct_size = sizeof options, .plugin_paths = paths, .plugin_path_count = m->count,
                                       .excluded_devices = excluded, .excluded_device_count = 2, .pointers = pointers,
                                       .pointer_count = m->count, .thread_count = 1 };
  return open_context(&options);
}

/* One token a run, from the first on; given tokens are taken instead of those that it finds. */
static void tell(tm_context *context, const llama_model *model, const int32_t *given, story *out) {
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1 };
  const uint64_t one[] = { 1 }, row[] = { 1, model->vocabulary };
  llama_network network;
  tm_plan *plan = NULL;
  tm_tensor *inputs[4], *logits = NULL;
  tm_error error = TM_ERROR_INIT;
  if (llama_network_build(&network, context, model, 1, STEPS, &error) != TM_OK || tm_plan_create(network.graph, &options, &plan, &error) != TM_OK)
    fail_msg("%s", error.text);
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(tm_tensor_create(context, TM_FORMAT_I32, i < 2 ? 1 : 0, one, &inputs[i], NULL), TM_OK);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, row, &logits, NULL), TM_OK);
  int32_t token = 1;
  for (int32_t step = 0; step < (int32_t)STEPS; step++) {
    const int32_t values[] = { token, step, step, step + 1 };
    for (uint32_t i = 0; i < 4; i++) memcpy(tm_tensor_data(inputs[i]), &values[i], sizeof values[i]);
    if (tm_plan_run(plan, inputs, 4, &logits, 1, NULL, &error) != TM_OK) fail_msg("step %d: %s", step, error.text);
    float *found = out->logits + (uint64_t)step * model->vocabulary;
    memcpy(found, tm_tensor_data(logits), model->vocabulary * sizeof *found);
    int32_t best = 0;
    for (int32_t i = 1; i < (int32_t)model->vocabulary; i++) best = found[i] > found[best] ? i : best;
    out->tokens[step] = best;
    token = given == NULL ? best : given[step];
  }
  tm_plan_step_description described = { .struct_size = sizeof described };
  for (uint32_t i = 0; tm_plan_step_describe(plan, i, &described) == TM_OK; i++)
    out->nodes[described.device < MOST_BACKENDS ? described.device : MOST_BACKENDS]++;
  tm_tensor_destroy(logits);
  for (uint32_t i = 0; i < 4; i++) tm_tensor_destroy(inputs[i]);
  tm_plan_destroy(plan);
  llama_network_free(&network);
}

/* The smallest distance of the two best, of the largest logit. */
static float compare(const llama_model *model, const story *expected, const story *found) {
  float smallest = INFINITY;
  for (uint32_t step = 0; step < STEPS; step++) {
    const float *a = expected->logits + (uint64_t)step * model->vocabulary, *b = found->logits + (uint64_t)step * model->vocabulary;
    const int32_t best = expected->tokens[step];
    float largest = 0, second = -INFINITY;
    for (uint32_t i = 0; i < model->vocabulary; i++) {
      largest = fmaxf(largest, fabsf(a[i]));
      if ((int32_t)i != best) second = fmaxf(second, a[i]);
    }
    for (uint32_t i = 0; i < model->vocabulary; i++) assert_true(fabsf(a[i] - b[i]) <= TOLERANCE * largest);
    if (a[best] - second > 2 * TOLERANCE * largest) assert_int_equal(found->tokens[step], best);
    smallest = fminf(smallest, (a[best] - second) / largest);
  }
  return smallest;
}

static llama_model model;
static mixture all;

static void every_mix_tells_the_same(void **state) {
  (void)state;
  story expected = { .logits = calloc((uint64_t)STEPS * model.vocabulary, sizeof(float)) };
  assert_non_null(expected.logits);
  mixture none = { .count = 0 };
  tm_context *context = open_mixture(&none, 0);
  tell(context, &model, NULL, &expected);
  tm_context_destroy(context);
  uint32_t mixed = 0;
  for (uint64_t seed = 1; seed <= MIXES; seed++) {
    story found = { .logits = calloc((uint64_t)STEPS * model.vocabulary, sizeof(float)) };
    assert_non_null(found.logits);
    context = open_mixture(&all, seed);
    tell(context, &model, expected.tokens, &found);
    tm_context_destroy(context);
    print_message("mix %" PRIu64 ":", seed);
    uint32_t sharing = 0;
    for (uint32_t i = 0; i <= MOST_BACKENDS; i++) {
      sharing += found.nodes[i] != 0;
      if (found.nodes[i] != 0) print_message(" %u on device %u", found.nodes[i], i);
    }
    mixed += sharing > 1;
    print_message("; smallest margin %.2e\n", (double)compare(&model, &expected, &found));
    free(found.logits);
  }
  assert_true(mixed >= MIXES / 2);
  free(expected.logits);
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: llama_mixes MODEL BACKEND...\n"), 2;
  FILE *file = fopen(argv[1], "rb");
  if (file == NULL) return printf("skipped: there is no %s\n", argv[1]), 77;
  fclose(file);
  if (!llama_model_read(&model, argv[1])) return 1;
  for (int i = 2; i < argc && all.count < MOST_BACKENDS; i++)
    if (!wear_mask(&all, argv[i])) return printf("skipped: %s cannot be loaded\n", argv[i]), 77;
  const struct CMUnitTest tests[] = { cmocka_unit_test(every_mix_tells_the_same) };
  const int status = cmocka_run_group_tests_name("llama_mixes", tests, NULL, NULL);
  llama_model_free(&model);
  return status;
}
