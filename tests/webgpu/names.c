/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement does not know names: real backends behind random ones, loaded in any order, get the same work at the same
 * price.  Nothing runs, so nothing is learned: the profile is frozen.
 */
#include "fakes/faulty_case.h"
#include "ops/op_table.h"
#include "tensor/shape.h"

#define BACKENDS 2u
#define ORDERS 4u               /* which mask whom wears, and which is loaded first */
#define MOST_CANDIDATES 16u
#define MOST_PLACEMENTS 512u

static const char *const inner_names[BACKENDS] = { "cpu", "webgpu" };

static tm_status tell_library(void *context, tm_string key, tm_string *out_value) {
  (void)context;
  const char *library = getenv("TENSORMORPH_WEBGPU_LIBRARY");
  const char *value = "";
  if (key.length == 7 && memcmp(key.data, "library", 7) == 0 && library != NULL) value = library;
  if (key.length == 17 && memcmp(key.data, "max_binding_bytes", 17) == 0) value = "0";
  if (key.length == 3 && memcmp(key.data, "isa", 3) == 0) value = "auto";
  *out_value = (tm_string){ value, strlen(value) };
  return TM_OK;
}

typedef struct masked {
  tm_context *context;
  fault_plan  plans[BACKENDS];
} masked;

/* The name that a mask has, whatever the build called it. */
static const char *mask_name(const char *path) {
  static char names[BACKENDS][64];
  static uint32_t next;
  tm_context *context = open_context(&(tm_context_options){ .struct_size = sizeof(tm_context_options), .plugin_paths = &path, .plugin_path_count = 1 });
  char *name = names[next++ % BACKENDS];
  snprintf(name, sizeof names[0], "%s", backend_of(context, path).name);
  tm_context_destroy(context);
  return name;
}

static void open_masked(masked *m, uint32_t order) {
  static tm_accelerator_backend_plugin tables[BACKENDS];
  static char paths[BACKENDS][512];
  const char *path_list[BACKENDS];
  tm_named_pointer pointers[BACKENDS];
  const uint32_t mask = 1 + (order & 1), first = order >> 1;
  memset(m, 0, sizeof *m);
  for (uint32_t i = 0; i < BACKENDS; i++) {
    for (uint32_t b = 0; b < tm_builtin_plugin_count; b++)
      if (strcmp(tm_builtin_plugins[b].name, inner_names[i]) == 0)
        assert_int_equal(tm_plugin_table_accept(tm_builtin_plugins[b].query(TM_ABI_MAJOR, TM_ABI_MINOR), NULL, &tables[i], NULL), TM_OK);
    if (tables[i].query == NULL) skip();
    m->plans[i] = (fault_plan){ .inner = &tables[i], .keeps_costs = 1, .config_get = tell_library, .uuid = { { 1, (uint8_t)i } } };
    snprintf(paths[i], sizeof paths[i], "%s/tests/fakes/mask_%s_%u.so", TM_BINARY_DIR, i == 0 ? "near" : "far", mask);
    path_list[(i + first) % BACKENDS] = paths[i];
    pointers[i] = (tm_named_pointer){ mask_name(paths[i]), FAULT_PLAN_KEY, &m->plans[i] };
  }
  const tm_context_options options = { .struct_size = sizeof options, .plugin_paths = path_list, .plugin_path_count = BACKENDS,
                                       .excluded_devices = inner_names, .excluded_device_count = BACKENDS, .pointers = pointers,
                                       .pointer_count = BACKENDS, .thread_count = 2 };
  m->context = open_context(&options);
  for (uint32_t i = 0; i < BACKENDS; i++)
    if (backend_of(m->context, pointers[i].backend).state != TM_BACKEND_READY) {
      print_message("%s: %s\n", inner_names[i], backend_of(m->context, pointers[i].backend).reason);
      tm_context_destroy(m->context);
      skip();
    }
}

/* Everything that a placement says, names aside. */
typedef struct verdicts {
  uint32_t count;
  struct {
    char     uuid[40];
    uint32_t verdict, numerics;
    uint64_t total_ns, price_ns;
  } candidates[MOST_CANDIDATES];
} verdicts;

static void look(tm_context *context, uint32_t op, uint32_t format, uint64_t extent, verdicts *out_verdicts) {
  tm_operand layouts[3], wanted[2] = { { .format = TM_FORMAT_NONE } };
  const tm_op_row *row = tm_op_find(op);
  const uint64_t dims[] = { extent, extent };
  uint8_t attributes[64] = { 0 };
  memset(layouts, 0, sizeof layouts);
  memset(out_verdicts, 0, sizeof *out_verdicts);
  for (uint32_t i = 0; i < row->input_min; i++) assert_int_equal(tm_operand_contiguous(format, 2, dims, &layouts[i], NULL), TM_OK);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N3 };
  tm_explanation *explanation = NULL;
  if (tm_explain(context, op, row->attribute_bytes == 0 ? NULL : attributes, row->attribute_bytes, layouts, row->input_min, wanted,
                 row->output_count, &options, &explanation, NULL) != TM_OK)
    return;
  tm_candidate candidate = { .struct_size = sizeof candidate };
  for (uint32_t i = 0; i < MOST_CANDIDATES && tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++) {
    tm_device_description device = { .struct_size = sizeof device };
    if (candidate.verdict > TM_VERDICT_SLOWER) continue;
    assert_int_equal(tm_device_describe(context, candidate.device, &device), TM_OK);
    snprintf(out_verdicts->candidates[out_verdicts->count].uuid, sizeof out_verdicts->candidates[0].uuid, "%s", device.uuid);
    out_verdicts->candidates[out_verdicts->count].verdict = candidate.verdict;
    out_verdicts->candidates[out_verdicts->count].numerics = candidate.numerics;
    out_verdicts->candidates[out_verdicts->count].total_ns = candidate.total_ns;
    out_verdicts->candidates[out_verdicts->count++].price_ns = candidate.price_ns;
  }
  tm_explanation_destroy(explanation);
}

/* Of every operation with every format and extent; returns their number. */
static uint32_t look_at_all(tm_context *context, verdicts *all) {
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_I8 };
  static const uint64_t extents[] = { 1, 64, 4096 };
  uint32_t count = 0;
  for (uint32_t o = 0; tm_op_at(o) != NULL; o++)
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
      for (size_t e = 0; e < sizeof extents / sizeof extents[0] && count < MOST_PLACEMENTS; e++)
        look(context, tm_op_at(o)->op, formats[f], extents[e], &all[count++]);
  return count;
}

/* One context at a time, since a mask has one face at a time. */
static void names_and_order_change_no_placement(void **state) {
  (void)state;
  static verdicts plain[MOST_PLACEMENTS], other[MOST_PLACEMENTS];
  masked m;
  uint32_t count = 0, shared = 0;
  for (uint32_t order = 0; order < ORDERS; order++) {
    open_masked(&m, order);
    count = look_at_all(m.context, order == 0 ? plain : other);
    tm_context_destroy(m.context);
    for (uint32_t i = 0; order != 0 && i < count; i++)
      if (memcmp(&plain[i], &other[i], sizeof plain[i]) != 0) fail_msg("placement %u differs in order %u", i, order);
  }
  for (uint32_t i = 0; i < count; i++) shared += plain[i].count > 2;
  print_message("%u placements compared, in %u of them all had a word\n", count, shared);
  assert_true(shared > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(names_and_order_change_no_placement) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
