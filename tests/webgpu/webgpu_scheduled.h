/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_scheduled.h - a context with the WebGPU backend and the reference in it, to run operations through the scheduler. */
#ifndef WEBGPU_SCHEDULED_H
#define WEBGPU_SCHEDULED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tensormorph/tensormorph.h"

#define SCHEDULED_SKIPPED 77

typedef struct scheduled {
  tm_context *context;
  uint32_t    device;                   /* index of the first one of the backend */
  uint32_t    reference;
  tm_device_description description;    /* of it */
  tm_error    error;
} scheduled;

/* With one setting of the backend's (NULL: none), or with functions of the application's (NULL: of the library that the
   environment names).  False where the backend has no device; then there is a message. */
static inline bool scheduled_open(scheduled *c, const char *key, const char *value, void *proc_address) {
  static const char *const devices[] = { "webgpu" };
  const char *library = getenv("TENSORMORPH_WEBGPU_LIBRARY");
  const tm_setting settings[] = { { "webgpu", "library", library == NULL ? "" : library }, { "webgpu", key, value } };
  const tm_named_pointer pointer = { "webgpu", "proc_address", proc_address };
  tm_context_options options = { .struct_size = sizeof options, .settings = settings, .pointers = &pointer };
  options.setting_count = key == NULL ? 1 : 2;
  options.pointer_count = proc_address == NULL ? 0 : 1;
  options.devices = devices;
  options.device_count = 1;
  memset(c, 0, sizeof *c);
  c->error.struct_size = sizeof c->error;
  c->device = c->reference = UINT32_MAX;
  if (tm_context_create(&options, &c->context, &c->error) != TM_OK) fail_msg("%s", c->error.text);
  tm_device_description description = { .struct_size = sizeof description };
  for (uint32_t i = 0; tm_device_describe(c->context, i, &description) == TM_OK; i++) {
    if (strcmp(description.name, "reference:0") == 0) c->reference = i;
    if (strcmp(description.name, "webgpu:0") == 0) c->device = i;
    if (c->device == i) c->description = description;
  }
  assert_true(c->reference != UINT32_MAX);
  if (c->device != UINT32_MAX) return true;
  print_message("skipped: the backend finds no device (TENSORMORPH_WEBGPU_LIBRARY)\n");
  tm_context_destroy(c->context);
  return false;
}

/* What has become of the device since. */
static inline void scheduled_describe(scheduled *c) {
  assert_int_equal(tm_device_describe(c->context, c->device, &c->description), TM_OK);
}

#endif
