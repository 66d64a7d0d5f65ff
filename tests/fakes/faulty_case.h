/* SPDX-License-Identifier: Apache-2.0 */
/* faulty_case.h - a context in which a built-in backend has a fault (faulty.h), and a checked operation to run there. */
#ifndef TM_TESTS_FAKES_FAULTY_CASE_H
#define TM_TESTS_FAKES_FAULTY_CASE_H

#include "fakes/faulty.h"
#include "plugin/builtin_plugins.h"
#include "plugin/table.h"
#include "unit/plugin/plugin_case.h"

#define FAULTY_COUNT 777u
/* Far more than any call takes on a machine under load. */
#define FAULTY_PATIENCE_NS UINT64_C(800000000)
#define FAULTY_FILE TM_BINARY_DIR "/tests/fakes/faulty.so"

typedef struct faulty_case {
  fault_plan  plan;
  tm_context *context;
  log_lines   lines;
  const char *file;             /* NULL: FAULTY_FILE */
  const char *state_folder;
  uint32_t    flags;
  uint32_t    builtin;          /* which one has the fault */
  const char *also_excluded;    /* beside it; NULL: nobody */
  uint64_t    patience_ns;      /* 0: FAULTY_PATIENCE_NS */
} faulty_case;

static inline void faulty_case_open(faulty_case *one) {
  static tm_accelerator_backend_plugin inner;
  const char *path[] = { one->file != NULL ? one->file : FAULTY_FILE };
  const tm_builtin_plugin *builtin = &tm_builtin_plugins[one->builtin];
  assert_int_equal(tm_plugin_table_accept(builtin->query(TM_ABI_MAJOR, TM_ABI_MINOR), NULL, &inner, NULL), TM_OK);
  one->plan.inner = &inner;
  const tm_named_pointer pointer = { "faulty", FAULT_PLAN_KEY, &one->plan };
  tm_context_options options = options_with(path, 1);
  options.flags = one->flags;
  const char *excluded[] = { builtin->name, one->also_excluded };
  options.excluded_devices = excluded;
  options.excluded_device_count = one->also_excluded == NULL ? 1 : 2;
  options.pointers = &pointer;
  options.pointer_count = 1;
  options.patience_ns = one->patience_ns != 0 ? one->patience_ns : FAULTY_PATIENCE_NS;
  options.state_folder = one->state_folder;
  options.log = keep_line;
  options.log_context = &one->lines;
  one->lines.length = 0;
  one->lines.text[0] = '\0';
  one->context = open_context(&options);
  expect_state(one->context, "faulty", TM_BACKEND_READY, "");
}

/* y = a + b or y = -a: inputs must stay as they are, and a result must be right. */
static inline tm_status faulty_case_run(faulty_case *one, uint32_t op, const tm_run_options *options, tm_error *error) {
  const uint32_t input_count = op == TM_OP_ADD ? 2 : 1;
  tm_tensor *a = vector_of(one->context, FAULTY_COUNT, 0.25f, 1.5f), *b = vector_of(one->context, FAULTY_COUNT, -4, 0.3f);
  tm_tensor *y = vector_of(one->context, FAULTY_COUNT, 9, 0);
  tm_tensor *inputs[] = { a, b };
  const tm_status status = tm_run(one->context, op, NULL, 0, inputs, input_count, &y, 1, options, error);
  const float *p = tm_tensor_data(a), *q = tm_tensor_data(b), *r = tm_tensor_data(y);
  for (uint32_t i = 0; i < FAULTY_COUNT; i++) {
    assert_true(p[i] == 0.25f + 1.5f * (float)i);
    assert_true(q[i] == -4 + 0.3f * (float)i);
    if (status == TM_OK) assert_true(r[i] == (op == TM_OP_ADD ? p[i] + q[i] : -p[i]));
  }
  tm_tensor_destroy(y);
  tm_tensor_destroy(b);
  tm_tensor_destroy(a);
  return status;
}

/* Whether the device with the fault computes it: it alone is asked, for on a slow machine it is soon known to be no bargain. */
static inline bool faulty_case_runs_there(faulty_case *one, uint32_t op) {
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .report = &report,
                                   .device_plus_one = device_of(one->context, "faulty:0") + 1 };
  tm_error error = TM_ERROR_INIT;
  const tm_status status = faulty_case_run(one, op, &options, &error);
  if (status != TM_OK && status != TM_ERROR_NO_DEVICE) fail_msg("%s", error.text);
  return status == TM_OK;
}

#endif
