/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_case.h - for tests that load plugins: contexts with given files, what became of each, and one honest operation. */
#ifndef TM_TESTS_PLUGIN_CASE_H
#define TM_TESTS_PLUGIN_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "tensormorph/tensormorph.h"

#define ZOO_FOLDER TM_BINARY_DIR "/tests/zoo"
#define ZOO(name) ZOO_FOLDER "/" name ".so"

/* What the library logged. */
typedef struct log_lines {
  char     text[65536];
  uint64_t length;
} log_lines;

static inline void keep_line(void *context, uint32_t level, const char *message) {
  log_lines *lines = context;
  (void)level;
  const uint64_t room = sizeof lines->text - lines->length;
  const int written = snprintf(lines->text + lines->length, (size_t)room, "%s\n", message);
  if (written > 0 && (uint64_t)written < room) lines->length += (uint64_t)written;
}

static inline tm_context_options options_with(const char *const *paths, uint32_t count) {
  return (tm_context_options){ .struct_size = sizeof(tm_context_options), .plugin_paths = paths, .plugin_path_count = count,
                               .thread_count = 3 };
}

static inline tm_context *open_context(const tm_context_options *options) {
  tm_error error = TM_ERROR_INIT;
  tm_context *context = NULL;
  if (tm_context_create(options, &context, &error) != TM_OK) fail_msg("no context: %s", error.text);
  return context;
}

/* The backend of that name or file; fails the test if there is none. */
static inline tm_backend_description backend_of(tm_context *context, const char *name_or_origin) {
  tm_backend_description found = { .struct_size = sizeof found };
  for (uint32_t i = 0; tm_backend_describe(context, i, &found) == TM_OK; i++)
    if (strcmp(found.name, name_or_origin) == 0 || strcmp(found.origin, name_or_origin) == 0) return found;
  fail_msg("no backend %s in the list", name_or_origin);
  return found;
}

/* The name of the first device of the plugin in that file; the caller gives the room. */
typedef struct device_name {
  char text[96];
} device_name;

static inline const char *device_name_of(tm_context *context, const char *path, device_name *out_name) {
  (void)snprintf(out_name->text, sizeof out_name->text, "%s:0", backend_of(context, path).name);
  return out_name->text;
}

static inline void expect_state(tm_context *context, const char *which, uint32_t state, const char *reason) {
  const tm_backend_description found = backend_of(context, which);
  if (found.state != state || strstr(found.reason, reason) == NULL)
    fail_msg("%s is in state %u because '%s'; expected state %u because '%s'", which, found.state, found.reason, state, reason);
}

/* Index of a device by its name, or TM_ANY_DEVICE. */
static inline uint32_t device_of(tm_context *context, const char *name) {
  tm_device_description device = { .struct_size = sizeof device };
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++)
    if (strcmp(device.name, name) == 0) return i;
  return TM_ANY_DEVICE;
}

static inline tm_device_description describe_device(tm_context *context, const char *name) {
  tm_device_description device = { .struct_size = sizeof device };
  if (tm_device_describe(context, device_of(context, name), &device) != TM_OK) fail_msg("no device %s", name);
  return device;
}

/* ---- one operation on vectors ---- */

static inline tm_tensor *vector_of(tm_context *context, uint64_t count, float first, float step) {
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 1, &count, &tensor, NULL), TM_OK);
  float *values = tm_tensor_data(tensor);
  for (uint64_t i = 0; i < count; i++) values[i] = first + step * (float)i;
  return tensor;
}

/* Negates or adds 1000 numbers with the options and checks every bit of the result.  Returns the status of the run. */
static inline tm_status run_checked(tm_context *context, uint32_t op, const tm_run_options *options, tm_error *error) {
  enum { COUNT = 1000 };
  tm_tensor *inputs[2] = { vector_of(context, COUNT, 0.1f, 0.7f), vector_of(context, COUNT, -3, 1.0f / 3) };
  tm_tensor *output = vector_of(context, COUNT, 77, 0);
  const uint32_t input_count = op == TM_OP_ADD ? 2 : 1;
  const tm_status status = tm_run(context, op, NULL, 0, inputs, input_count, &output, 1, options, error);
  const float *a = tm_tensor_data(inputs[0]), *b = tm_tensor_data(inputs[1]), *y = tm_tensor_data(output);
  for (uint32_t i = 0; i < COUNT && status == TM_OK; i++) {
    const float expected = op == TM_OP_ADD ? a[i] + b[i] : -a[i];
    if (memcmp(&expected, &y[i], sizeof expected) != 0) fail_msg("y[%u] is %a, expected %a", i, (double)y[i], (double)expected);
  }
  tm_tensor_destroy(output);
  tm_tensor_destroy(inputs[1]);
  tm_tensor_destroy(inputs[0]);
  return status;
}

/* The same on one device, or on any (TM_ANY_DEVICE). */
static inline tm_run_report run_on(tm_context *context, uint32_t op, uint32_t device) {
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT,
                                   .device_plus_one = device == TM_ANY_DEVICE ? 0 : device + 1, .report = &report };
  tm_error error = TM_ERROR_INIT;
  if (run_checked(context, op, &options, &error) != TM_OK) fail_msg("the run failed: %s", error.text);
  return report;
}

static inline void expect_honest_unharmed(tm_context *context) {
  expect_state(context, "zoo_honest", TM_BACKEND_READY, "");
  assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, "zoo_honest:0")).fell_back, 0);
}

#endif
