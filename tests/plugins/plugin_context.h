/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_context.h - what the tests share that use a plugin as an application does. */
#ifndef PLUGIN_CONTEXT_H
#define PLUGIN_CONTEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include <tensormorph/tensormorph.h>

static inline tm_context *make_context(const char *plugin, const tm_setting *setting) {
  const char *const plugins[] = { plugin };
  const tm_context_options options = { .struct_size = sizeof options, .plugin_paths = plugins, .plugin_path_count = 1,
                                       .thread_count = 2,       /* so that prices do not depend on the machine's cores */
                                       .settings = setting, .setting_count = setting != NULL };
  tm_error error = { .struct_size = sizeof error };
  tm_context *context = NULL;
  if (tm_context_create(&options, &context, &error) != TM_OK) fail_msg("%s", error.text);
  return context;
}

static inline uint32_t device_named(tm_context *context, const char *name) {
  tm_device_description device = { .struct_size = sizeof device };
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++)
    if (strcmp(device.name, name) == 0) return i;
  return TM_ANY_DEVICE;
}

static inline tm_tensor *make_tensor(tm_context *context, uint32_t format, uint64_t rows, uint64_t columns) {
  const uint64_t dims[] = { rows, columns };
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(context, format, 2, dims, &tensor, NULL), TM_OK);
  return tensor;
}

static inline void fill(tm_tensor *tensor, uint32_t seed) {
  float *values = tm_tensor_data(tensor);
  for (uint64_t i = 0; i < tm_tensor_operand(tensor)->element_count; i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(int32_t)seed * 0x1p-31f;
  }
}

/* y on one device; the device that did it is told. */
static inline tm_status run_on(tm_context *context, uint32_t device, uint32_t op, tm_tensor *const *inputs, tm_tensor *y,
                               uint32_t worst, tm_run_report *out_report) {
  const tm_matmul_attributes attributes = { 0, 0 };
  *out_report = (tm_run_report){ .struct_size = sizeof *out_report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = worst, .device_plus_one = device + 1,
                                   .report = out_report };
  const int is_product = op == TM_OP_MATMUL;
  return tm_run(context, op, is_product ? &attributes : NULL, is_product ? sizeof attributes : 0, inputs, 2, &y, 1, &options, NULL);
}

#endif
