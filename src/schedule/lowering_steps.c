/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a lowering as requests, and in words. */
#include <stdio.h>
#include <string.h>

#include "schedule/lowering.h"
#include "tensor/format.h"
#include "tensor/shape.h"

static void begin_step(uint32_t op, const tm_operand *from, const tm_operand *to, tm_request *out_request) {
  const tm_op_row *row = tm_op_find(op);
  memset(out_request, 0, sizeof *out_request);
  out_request->op = op;
  out_request->version = row == NULL ? 1 : row->version;
  out_request->worst_numerics = TM_NUMERICS_N0;
  out_request->only_device = TM_ANY_DEVICE;
  out_request->flags = TM_REQUEST_AS_IS;
  out_request->input_count = 1;
  out_request->output_count = 1;
  out_request->attribute_bytes = row == NULL ? 0 : row->attribute_bytes;
  out_request->operands[0] = *from;
  out_request->operands[1] = *to;
  out_request->operands[1].flags &= ~TM_OPERAND_CONSTANT;
}

void tm_lowering_move_request(const tm_operand_way *way, bool is_output, tm_request *out_request) {
  if (is_output)
    begin_step(way->op, &way->inside, &way->original, out_request);
  else
    begin_step(way->op, &way->original, &way->inside, out_request);
}

void tm_lowering_fill_request(const tm_operand_way *way, tm_request *out_request) {
  tm_operand value;
  (void)tm_operand_contiguous(way->dense.format, 0, NULL, &value, NULL);
  value.alignment = 8;
  begin_step(TM_OP_FILL, &value, &way->dense, out_request);
}

void tm_lowering_convert_request(const tm_operand_way *way, uint32_t device, tm_request *out_request) {
  begin_step(TM_OP_CONVERT, &way->presented, &way->packed, out_request);
  out_request->only_device = device;
}

void tm_lowering_add_request(const tm_split *split, const tm_operand *to, tm_request *out_request) {
  begin_step(TM_OP_ADD, &split->sum, &split->sum, out_request);
  out_request->input_count = 2;
  out_request->operands[0].alignment = out_request->operands[1].alignment = 64;
  out_request->operands[2] = *to;
}

void tm_lowering_finish_request(const tm_split *split, const tm_operand *y, tm_request *out_request) {
  begin_step(split->sum.format == y->format ? TM_OP_COPY : TM_OP_CAST, &split->sum, y, out_request);
  out_request->operands[0].alignment = 64;
}

/* ---- words ---- */

typedef struct word_list {
  char    *text;
  uint64_t capacity;
  uint64_t used;
} word_list;

static void say(word_list *list, const char *word, char operand, const char *detail) {
  if (list->used >= list->capacity) return;
  const int length = snprintf(list->text + list->used, list->capacity - list->used, "%s%s(%c%s%s)", list->used == 0 ? "" : ", ",
                              word, operand, detail[0] == '\0' ? "" : ", ", detail);
  list->used += length < 0 ? 0 : (uint64_t)length;
}

static const char *format_name(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  return info == NULL ? "private" : info->name;
}

static void describe_way(const tm_operand_way *way, char letter, word_list *list) {
  if (way->op == TM_OP_CAST) say(list, "cast", letter, format_name(way->dense.format));
  if (way->op == TM_OP_DEQUANTIZE) say(list, "dequantize", letter, format_name(way->dense.format));
  if (way->is_padded) {
    char dims[128];
    tm_format_dims(&way->dense, dims, sizeof dims);
    say(list, "pad", letter, dims);
  } else if (way->op == TM_OP_COPY) {
    say(list, way->dense.alignment > 64 ? "align" : "contiguous", letter, "");
  }
  if (way->op != TM_OP_NONE && way->presented.rank != way->dense.rank) say(list, "merge", letter, "");
  if (way->packed.format != TM_FORMAT_NONE) say(list, "convert", letter, "private");
}

static char letter_of(uint32_t operand, uint32_t input_count) {
  return operand >= input_count ? 'y' : (char)('a' + (char)operand);
}

static void describe_split(const tm_split *split, uint32_t input_count, word_list *list) {
  char detail[64];
  snprintf(detail, sizeof detail, "axis %u, %llu parts", split->axis, (unsigned long long)split->count);
  say(list, "split", letter_of(split->operand, input_count), detail);
}

void tm_lowering_describe(const tm_lowering *lowering, uint32_t input_count, char *text, uint64_t capacity) {
  word_list list = { text, capacity, 0 };
  text[0] = '\0';
  if (lowering->kind == TM_LOWERING_SPLIT) describe_split(&lowering->split, input_count, &list);
  if (lowering->kind == TM_LOWERING_QUANTIZED) {
    say(&list, "quantize", 'a', "i8");
    say(&list, "quantize", 'b', "i8");
  }
  for (uint32_t i = 0; i < lowering->way_count; i++) {
    describe_way(&lowering->ways[i], letter_of(lowering->ways[i].operand, input_count), &list);
  }
  if (lowering->kind == TM_LOWERING_CHANGED && lowering->way_count == 0) say(&list, "merge", 'a', "");
}
