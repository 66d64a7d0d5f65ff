/* SPDX-License-Identifier: Apache-2.0 */
/* fake_case.h - a context with fake accelerators in it, and small operations to run there. */
#ifndef TM_TESTS_FAKE_CASE_H
#define TM_TESTS_FAKE_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fakes/fake_control.h"
#include "tensormorph/tensormorph.h"

#define FAKES 3
#define FAKE_ELEMENTS 1024u

/* controls[i] belongs to the backend "fake_" + letters[i]; they are loaded in the order of `letters` ("ab", "cba"). */
typedef struct fake_case {
  tm_context  *context;
  fake_control controls[FAKES];
  uint64_t     patience_ns;     /* 0: the usual */
  void      *(*alloc)(void *context, uint64_t bytes, uint64_t alignment);       /* NULL: the library's */
  void       (*free)(void *context, void *memory, uint64_t bytes);
  tm_tensor   *x;
  tm_tensor   *y;
} fake_case;

static inline void fake_case_open(fake_case *one, const char *letters, const char *excluded) {
  static char paths[FAKES][512];
  static char names[FAKES][16];
  const char *path_list[FAKES];
  tm_named_pointer pointers[FAKES];
  const uint32_t count = (uint32_t)strlen(letters);
  for (uint32_t i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "fake_%c", letters[i]);
    snprintf(paths[i], sizeof paths[i], "%s/tests/fakes/%s.so", TM_BINARY_DIR, names[i]);
    path_list[i] = paths[i];
    pointers[i] = (tm_named_pointer){ names[i], FAKE_CONTROL_KEY, &one->controls[i] };
  }
  const char *excluded_list[] = { "cpu", excluded };
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = {
    .struct_size = sizeof options,
    .thread_count = 1,
    .plugin_path_count = count,
    .plugin_paths = path_list,
    .excluded_devices = excluded_list,
    .excluded_device_count = excluded == NULL ? 1 : 2,
    .pointers = pointers,
    .pointer_count = count,
    .patience_ns = one->patience_ns,
    .alloc = one->alloc,
    .free = one->free,
  };
  if (tm_context_create(&options, &one->context, &error) != TM_OK) fail_msg("%s", error.text);
  const uint64_t dims[] = { FAKE_ELEMENTS };
  assert_int_equal(tm_tensor_create(one->context, TM_FORMAT_F32, 1, dims, &one->x, NULL), TM_OK);
  assert_int_equal(tm_tensor_create(one->context, TM_FORMAT_F32, 1, dims, &one->y, NULL), TM_OK);
  float *x = tm_tensor_data(one->x);
  for (uint32_t i = 0; i < FAKE_ELEMENTS; i++) x[i] = (float)i;
}

static inline void fake_case_close(fake_case *one) {
  tm_tensor_destroy(one->x);
  tm_tensor_destroy(one->y);
  tm_context_destroy(one->context);
}

/* y = -x; checks the result and gives the report. */
static inline tm_run_report fake_case_run(fake_case *one, const tm_run_options *given) {
  tm_run_report report = { .struct_size = sizeof report };
  tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  if (given != NULL) options = *given;
  options.report = &report;
  tm_error error = { .struct_size = sizeof error };
  memset(tm_tensor_data(one->y), 0, FAKE_ELEMENTS * sizeof(float));
  if (tm_run(one->context, TM_OP_NEG, NULL, 0, &one->x, 1, &one->y, 1, &options, &error) != TM_OK) fail_msg("%s", error.text);
  const float *y = tm_tensor_data(one->y);
  for (uint32_t i = 0; i < FAKE_ELEMENTS; i++) assert_true(y[i] == -(float)i);
  return report;
}

/* "fake_a:0", "reference:0" */
static inline const char *fake_device_name(const fake_case *one, uint32_t device) {
  static char name[64];
  tm_device_description description = { .struct_size = sizeof description };
  assert_int_equal(tm_device_describe(one->context, device, &description), TM_OK);
  snprintf(name, sizeof name, "%s", description.name);
  return name;
}

static inline uint32_t fake_device_index(const fake_case *one, const char *name) {
  tm_device_description description = { .struct_size = sizeof description };
  for (uint32_t i = 0; tm_device_describe(one->context, i, &description) == TM_OK; i++)
    if (strcmp(description.name, name) == 0) return i;
  fail_msg("there is no device %s", name);
  return 0;
}

#endif
