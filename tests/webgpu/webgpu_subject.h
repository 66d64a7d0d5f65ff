/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_subject.h - the built-in backend opened on the implementation that the environment names, or a reason to skip. */
#ifndef WEBGPU_SUBJECT_H
#define WEBGPU_SUBJECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/error.h"
#include "conformance/subject.h"
#include "ops/op_table.h"
#include "plugin/builtin_plugins.h"
#include "plugin/table.h"
#include "tensor/shape.h"

static tm_accelerator_backend_plugin webgpu_table;

/* TM_ERROR_NO_DEVICE makes the test a skipped one. */
static inline tm_status webgpu_subject_open(subject *s, const subject_settings *extra) {
  static char library[1100];
  subject_options options = { .table = &webgpu_table };
  const char *file = getenv("TENSORMORPH_WEBGPU_LIBRARY");
  tm_error error = TM_ERROR_INIT;
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++) {
    if (strcmp(tm_builtin_plugins[i].name, "webgpu") != 0) continue;
    const tm_plugin_header *header = tm_builtin_plugins[i].query(TM_ABI_MAJOR, TM_ABI_MINOR);
    if (tm_plugin_table_accept(header, NULL, &webgpu_table, &error) != TM_OK) return TM_ERROR_INTERNAL;
  }
  if (extra != NULL) options.settings = *extra;
  snprintf(library, sizeof library, "library=%s", file == NULL ? "" : file);
  options.settings.words[options.settings.count++] = library;
  return subject_open(s, &options);
}

static inline bool webgpu_subject_is_open(subject *s, const subject_settings *extra) {
  const tm_status status = webgpu_subject_open(s, extra);
  if (status == TM_OK) return true;
  if (status != TM_ERROR_NO_DEVICE) fail_msg("it does not open: %d: %s", status, s->text);
  print_message("skipped: %s\n", s->text);
  return false;
}

/* Everything that it took of the host has come back. */
static inline void webgpu_subject_close(subject *s) {
  subject_close(s);
  assert_int_equal(atomic_load(&s->memory.used_bytes), 0);
}

/* ---- memory ---- */

static inline tm_buffer *make_buffer(subject *s, uint64_t bytes) {
  tm_buffer *buffer = NULL;
  assert_int_equal(s->table.buffer_create(s->device, 0, bytes, &buffer), TM_OK);
  return buffer;
}

static inline void drop_buffer(subject *s, tm_buffer *buffer, uint64_t bytes) { s->table.buffer_destroy(s->device, 0, buffer,
    bytes, 0); }

typedef tm_status (*transfer_fn)(tm_device *, const tm_transfer *, tm_ticket *);

/* Until the queue has room. */
static inline tm_ticket put(subject *s, transfer_fn function, const tm_transfer *transfer) {
  tm_ticket ticket = { 0, 0, 0 };
  tm_status status = TM_BUSY;
  while (status == TM_BUSY) status = function(s->device, transfer, &ticket);
  if (status != TM_OK) fail_msg("a transfer gave %d: %s", status, s->text);
  return ticket;
}

static inline void finish(subject *s, tm_ticket ticket) {
  const tm_status status = s->table.wait(s->device, &ticket, 1, TM_WAIT_FOREVER);
  if (status != TM_OK) fail_msg("a wait gave %d: %s", status, s->text);
}

static inline void write_all(subject *s, tm_buffer *to, const void *bytes, uint64_t count) {
  finish(s, put(s, s->table.upload, &(tm_transfer){ .struct_size = sizeof(tm_transfer), .destination = to,
      .host = (void *)(uintptr_t)bytes, .bytes = count }));
}

static inline void read_all(subject *s, tm_buffer *from, void *bytes, uint64_t count) {
  finish(s, put(s, s->table.download, &(tm_transfer){ .struct_size = sizeof(tm_transfer), .source = from, .host = bytes,
      .bytes = count }));
}

/* ---- i32 additions ---- */

typedef struct addition {
  tm_operation operation;
  tm_operand   operands[3];
  tm_answer    answer;
  tm_kernel   *kernel;
} addition;

static inline void addition_ask(addition *a, subject *s, uint32_t op, uint64_t count) {
  *a = (addition){ .operation = { .struct_size = sizeof(tm_operation), .op = op, .version = 1, .worst_numerics = TM_NUMERICS_N0,
                                  .input_count = 2, .output_count = 1 } };
  a->operation.operands = a->operands;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(tm_operand_contiguous(TM_FORMAT_I32, 1, &count, &a->operands[i], NULL), TM_OK);
    a->operands[i].alignment = 64;
  }
  a->answer = subject_ask(s, &a->operation);
}

static inline void addition_prepare(addition *a, subject *s, uint64_t count) {
  addition_ask(a, s, TM_OP_ADD, count);
  assert_int_equal(a->answer.level, TM_LEVEL_NATIVE);
  const tm_status status = s->table.prepare(s->device, &a->operation, &a->answer, &a->kernel);
  if (status != TM_OK) fail_msg("prepare gave %d: %s", status, s->text);
}

/* x + x2 -> y, each at an offset. */
static inline tm_status launch(subject *s, uint32_t queue, const addition *a, const tm_binding *bindings, const tm_ticket *waits,
                               uint32_t wait_count, tm_ticket *out_ticket) {
  const tm_launch what = { .struct_size = sizeof what, .queue = queue, .kernel = a->kernel, .bindings = bindings,
      .binding_count = 3,
                           .waits = waits, .wait_count = wait_count };
  tm_status status = TM_BUSY;
  while (status == TM_BUSY) status = s->table.launch(s->device, &what, out_ticket);
  return status;
}

#endif
