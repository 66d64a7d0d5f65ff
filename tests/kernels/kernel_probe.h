/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_probe.h - one operation on data that a test has made itself: run by the backend and by the reference.  Everything
 * is dense; the host may still broadcast.
 */
#ifndef KERNEL_PROBE_H
#define KERNEL_PROBE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "conformance/kernel_cases.h"
#include "kernel_host.h"

#include "base/error.h"
#include "plugin/builtin_plugins.h"

#define PROBE_BACKEND "cpu"

typedef struct probe {
  tm_operation operation;
  tm_operand   operands[TM_MAX_OPERANDS];
  void        *pointers[TM_MAX_OPERANDS];     /* inputs, then the backend's output */
  void        *expected;                        /* the reference's output */
} probe;

static inline tm_plugin_query_fn probe_entry(void) {
  for (uint32_t i = 0; i < tm_builtin_plugin_count; ++i) {
    if (strcmp(tm_builtin_plugins[i].name, PROBE_BACKEND) == 0) return tm_builtin_plugins[i].query;
  }
  return NULL;
}

/* Opens the backend, or says why this machine cannot test it; any other failure of init fails the test. */
static inline bool probe_open_isa(kernel_host *host, const char *isa, uint32_t lanes, uint32_t threads) {
  const tm_plugin_query_fn entry = probe_entry();
  assert_non_null(entry);
  kernel_host_open(host, entry, isa, lanes, threads);
  if (host->status == TM_OK) return true;
  if (host->status != TM_ERROR_NO_DEVICE) fail_msg("init gave %d: %s", host->status, host->text);
  print_message("skipped: %s\n", host->text);
  return false;
}

static inline bool probe_open(kernel_host *host, uint32_t lanes, uint32_t threads) {
  return probe_open_isa(host, "avx2", lanes, threads);
}

static inline probe probe_of(uint32_t op, const void *attributes, uint32_t attribute_bytes) {
  return (probe){ .operation = { .struct_size = sizeof(tm_operation), .op = op, .version = tm_op_find(op)->version, .output_count = 1,
                                 .worst_numerics = TM_NUMERICS_N4, .attributes = attributes, .attribute_bytes = attribute_bytes } };
}

/* Appends a dense input; `data` stays the caller's. */
static inline void probe_input(probe *p, uint32_t format, uint32_t rank, const uint64_t *dims, const void *data) {
  const uint32_t i = p->operation.input_count++;
  assert_int_equal(tm_operand_contiguous(format, rank, dims, &p->operands[i], NULL), TM_OK);
  p->pointers[i] = (void *)(uintptr_t)data;
}

/* Derives the output, in `format` or the default one, and brings the operation into the form that backends see. */
static inline void probe_finish(probe *p, uint32_t format) {
  tm_operand *y = &p->operands[p->operation.input_count];
  tm_error error = TM_ERROR_INIT;
  y->format = format;
  p->operation.operands = p->operands;
  if (tm_op_infer_outputs(&p->operation, y, &error) != TM_OK) fail_msg("%s", error.text);
  tm_op_normalize(&p->operation, p->operands);
  p->pointers[p->operation.input_count] = malloc(y->byte_count + 1);
  p->expected = malloc(y->byte_count + 1);
  assert_non_null(p->pointers[p->operation.input_count]);
  assert_non_null(p->expected);
}

static inline void *probe_result(const probe *p) { return p->pointers[p->operation.input_count]; }
static inline uint64_t probe_result_count(const probe *p) { return p->operands[p->operation.input_count].element_count; }
static inline uint64_t probe_result_bytes(const probe *p) { return p->operands[p->operation.input_count].byte_count; }

/* Runs it on the backend, which must claim it by the row of that name; returns the answer. */
static inline tm_answer probe_run(probe *p, kernel_host *host, const char *row) {
  kernel_run run;
  p->operation.operands = p->operands;
  const tm_answer answer = kernel_host_query(host, &p->operation);
  if (answer.level == TM_LEVEL_REFUSED) fail_msg("%s is refused: %.*s", row, (int)answer.text.length, answer.text.data);
  assert_string_equal(answer.text.data, row);
  assert_int_equal(kernel_run_prepare(&run, host, &p->operation), TM_OK);
  memset(probe_result(p), CASE_GUARD, probe_result_bytes(p));
  assert_int_equal(kernel_run_launch(&run, p->pointers), TM_OK);
  kernel_run_release(&run);
  return answer;
}

static inline void probe_reference(probe *p) {
  const tm_op_row *row = tm_op_find(p->operation.op);
  void *pointers[TM_MAX_OPERANDS];
  memcpy(pointers, p->pointers, sizeof pointers);
  pointers[p->operation.input_count] = p->expected;
  p->operation.operands = p->operands;
  row->reference(&p->operation, pointers, 0, row->units(&p->operation));
}

static inline void probe_free(probe *p) {
  free(probe_result(p));
  free(p->expected);
}

#endif
