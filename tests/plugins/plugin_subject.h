/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_subject.h - what the tests share that drive a plugin through its table, as the host of the conformance run. */
#ifndef PLUGIN_SUBJECT_H
#define PLUGIN_SUBJECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "conformance/subject.h"
#include "conformance/kernel_cases.h"
#include "plugin/library.h"
#include "plugin/table.h"

#define SIMULATOR TM_PLUGINS "/simulator.so"
#define NPU "device_file=" TM_PLUGINS "/devices/npu.json"
#define GPU_LIKE "device_file=" TM_PLUGINS "/devices/gpu_like.json"

/* Words up to a NULL are settings. */
static inline tm_status plugin_open(subject *s, const char *file, const char *const *words) {
  static tm_accelerator_backend_plugin table;
  const tm_log silent = { NULL, NULL };
  const tm_plugin_header *header = NULL;
  tm_error error = TM_ERROR_INIT;
  subject_options options = { .table = &table, .threads = 2 };
  while (*words != NULL) options.settings.words[options.settings.count++] = *words++;
  assert_int_equal(tm_plugin_library_load(file, &silent, &header, &error), TM_OK);
  assert_int_equal(tm_plugin_table_accept(header, file, &table, &error), TM_OK);
  return subject_open(s, &options);
}

/* A dense operand, aligned as buffers are. */
static inline tm_operand dense(uint32_t format, uint64_t rows, uint64_t columns, uint32_t flags) {
  const uint64_t dims[] = { rows, columns };
  tm_operand operand;
  assert_int_equal(tm_operand_contiguous(format, 2, dims, &operand, NULL), TM_OK);
  operand.alignment = 64;
  operand.flags |= flags;
  return operand;
}

/* What is said of a matmul: operands a, b, y. */
static inline tm_operation product_of(const tm_operand *operands, const tm_matmul_attributes *attributes, uint32_t worst) {
  return (tm_operation){ .struct_size = sizeof(tm_operation), .op = TM_OP_MATMUL, .version = 1, .worst_numerics = worst,
                         .attribute_bytes = sizeof *attributes, .input_count = 2, .output_count = 1, .operands = operands,
                         .attributes = attributes };
}

#endif
