/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_runner.c - runs single operations through their references for oracle scripts in other languages.  Reads cases
 * from standard input until its end and answers each on standard output:
 *
 *   in:   <operation> <attributes in hex or -> <output format or -> <number of inputs>\n
 *         and per input <format> <rank> <dims ...>\n followed by its bytes, dense
 *   out:  ok <format> <rank> <dims ...>\n followed by the bytes, or  error <text>\n
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op_table.h"
#include "tensor/format.h"
#include "tensor/shape.h"

typedef struct job {
  tm_operation operation;
  tm_operand   operands[TM_MAX_OPERANDS];
  void        *pointers[TM_MAX_OPERANDS];
  uint8_t      attributes[64];
  tm_error     error;
} job;

static bool broken(const char *what) {
  fprintf(stderr, "op_runner: %s\n", what);
  return false;
}

static bool read_attributes(const char *hex, job *j) {
  const size_t length = strlen(hex);
  if (strcmp(hex, "-") == 0) return true;
  if (length % 2 != 0 || length / 2 > sizeof j->attributes) return broken("bad attributes");
  for (size_t i = 0; i < length / 2; i++) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return broken("bad attributes");
    j->attributes[i] = (uint8_t)byte;
  }
  j->operation.attributes = j->attributes;
  j->operation.attribute_bytes = (uint32_t)(length / 2);
  return true;
}

static bool read_input(job *j, uint32_t index) {
  char name[32];
  uint32_t rank;
  uint64_t dims[TM_MAX_RANK];
  if (scanf("%31s %" SCNu32, name, &rank) != 2 || rank > TM_MAX_RANK) return broken("bad input line");
  for (uint32_t i = 0; i < rank; i++)
    if (scanf("%" SCNu64, &dims[i]) != 1) return broken("bad dims");
  if (getchar() != '\n') return broken("expected a line end");
  const tm_format_info *info = tm_format_by_name(name, strlen(name));
  if (info == NULL || tm_operand_contiguous(info->format, rank, dims, &j->operands[index], NULL) != TM_OK)
    return broken("bad input");
  const size_t bytes = (size_t)j->operands[index].byte_count;
  j->pointers[index] = malloc(bytes + 1);
  return fread(j->pointers[index], 1, bytes, stdin) == bytes ? true : broken("input cut short");
}

static bool read_job(job *j, bool *out_end) {
  char name[32], hex[160], format[32];
  const int items = scanf(" %31s %159s %31s %" SCNu32, name, hex, format, &j->operation.input_count);
  *out_end = items == EOF;
  if (items != 4) return items == EOF ? false : broken("bad case line");
  const tm_op_row *row = tm_op_by_name(name, strlen(name));
  const tm_format_info *wanted = tm_format_by_name(format, strlen(format));
  if (row == NULL || j->operation.input_count >= TM_MAX_OPERANDS) return broken("unknown operation");
  j->operation.op = row->op;
  j->operation.version = row->version;
  j->operation.output_count = 1;
  j->operation.operands = j->operands;
  if (!read_attributes(hex, j)) return false;
  for (uint32_t i = 0; i < j->operation.input_count; i++)
    if (!read_input(j, i)) return false;
  j->operands[j->operation.input_count].format = wanted != NULL ? wanted->format : TM_FORMAT_NONE;
  return true;
}

static void answer(job *j) {
  tm_operand *y = &j->operands[j->operation.input_count];
  if (tm_op_infer_outputs(&j->operation, y, &j->error) != TM_OK || tm_op_check(&j->operation, &j->error) != TM_OK) {
    printf("error %s\n", j->error.text);
    return;
  }
  const tm_op_row *row = tm_op_find(j->operation.op);
  j->pointers[j->operation.input_count] = malloc((size_t)y->byte_count + 1);
  row->reference(&j->operation, j->pointers, 0, row->units(&j->operation));
  printf("ok %s %" PRIu32, tm_format_find(y->format)->name, y->rank);
  for (uint32_t i = 0; i < y->rank; i++) printf(" %" PRIu64, y->dims[i]);
  putchar('\n');
  fwrite(j->pointers[j->operation.input_count], 1, (size_t)y->byte_count, stdout);
}

int main(void) {
  for (bool is_end = false; !is_end;) {
    job j = { .operation = { .struct_size = sizeof(tm_operation) }, .error = TM_ERROR_INIT };
    const bool is_whole = read_job(&j, &is_end);
    if (is_whole) answer(&j);
    for (uint32_t i = 0; i < TM_MAX_OPERANDS; i++) free(j.pointers[i]);
    if (!is_whole && !is_end) return 1;
    fflush(stdout);
  }
  return 0;
}
