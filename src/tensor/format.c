/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/format.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define PLAIN(id, kind, name, st, gguf, bytes) { TM_FORMAT_##id, TM_KIND_##kind, name, st, gguf, 1, bytes, true, true }
#define SIZED(id, kind, name, st, elements, bytes) \
  { TM_FORMAT_##id, TM_KIND_##kind, name, st, TM_NO_GGUF_TYPE, elements, bytes, false, false }
#define PACKED(id, kind, name, elements, bytes) \
  { TM_FORMAT_##id, TM_KIND_##kind, name, NULL, TM_NO_GGUF_TYPE, elements, bytes, true, true }
#define BLOCK(id, name, gguf, elements, bytes, can) { TM_FORMAT_##id, TM_KIND_BLOCK, name, NULL, gguf, elements, bytes, can }
/* What can be done with a block format: has_values, has_arithmetic. */
#define COMPUTE true, true
#define READ true, false
#define MOVE false, false

/* By number, in ascending order: tm_format_find relies on it. */
static const tm_format_info formats[] = {
  PLAIN(F64, FLOAT, "f64", "F64", 28, 8),
  PLAIN(F32, FLOAT, "f32", "F32", 0, 4),
  PLAIN(F16, FLOAT, "f16", "F16", 1, 2),
  PLAIN(BF16, FLOAT, "bf16", "BF16", 30, 2),
  PLAIN(F8_E4M3FN, FLOAT, "f8_e4m3fn", "F8_E4M3", TM_NO_GGUF_TYPE, 1),
  PLAIN(F8_E5M2, FLOAT, "f8_e5m2", "F8_E5M2", TM_NO_GGUF_TYPE, 1),
  SIZED(F8_E8M0, FLOAT, "f8_e8m0", "F8_E8M0", 1, 1),
  SIZED(F6_E2M3, FLOAT, "f6_e2m3", "F6_E2M3", 4, 3),
  SIZED(F6_E3M2, FLOAT, "f6_e3m2", "F6_E3M2", 4, 3),
  SIZED(F4_E2M1, FLOAT, "f4_e2m1", "F4", 2, 1),
  PACKED(I4, SIGNED, "i4", 2, 1),
  PACKED(U4, UNSIGNED, "u4", 2, 1),
  PLAIN(I8, SIGNED, "i8", "I8", 24, 1),
  PLAIN(U8, UNSIGNED, "u8", "U8", TM_NO_GGUF_TYPE, 1),
  PLAIN(I16, SIGNED, "i16", "I16", 25, 2),
  PLAIN(U16, UNSIGNED, "u16", "U16", TM_NO_GGUF_TYPE, 2),
  PLAIN(I32, SIGNED, "i32", "I32", 26, 4),
  PLAIN(U32, UNSIGNED, "u32", "U32", TM_NO_GGUF_TYPE, 4),
  PLAIN(I64, SIGNED, "i64", "I64", 27, 8),
  PLAIN(U64, UNSIGNED, "u64", "U64", TM_NO_GGUF_TYPE, 8),
  PLAIN(BOOL, BOOL, "bool", "BOOL", TM_NO_GGUF_TYPE, 1),
  SIZED(C64, COMPLEX, "c64", "C64", 1, 8),
  BLOCK(Q4_0, "q4_0", 2, 32, 18, COMPUTE),
  BLOCK(Q4_1, "q4_1", 3, 32, 20, READ),
  BLOCK(Q5_0, "q5_0", 6, 32, 22, READ),
  BLOCK(Q5_1, "q5_1", 7, 32, 24, READ),
  BLOCK(Q8_0, "q8_0", 8, 32, 34, COMPUTE),
  BLOCK(Q8_1, "q8_1", 9, 32, 36, READ),
  BLOCK(Q2_K, "q2_k", 10, 256, 84, READ),
  BLOCK(Q3_K, "q3_k", 11, 256, 110, READ),
  BLOCK(Q4_K, "q4_k", 12, 256, 144, READ),
  BLOCK(Q5_K, "q5_k", 13, 256, 176, READ),
  BLOCK(Q6_K, "q6_k", 14, 256, 210, READ),
  BLOCK(Q8_K, "q8_k", 15, 256, 292, READ),
  BLOCK(IQ2_XXS, "iq2_xxs", 16, 256, 66, MOVE),
  BLOCK(IQ2_XS, "iq2_xs", 17, 256, 74, MOVE),
  BLOCK(IQ3_XXS, "iq3_xxs", 18, 256, 98, MOVE),
  BLOCK(IQ1_S, "iq1_s", 19, 256, 50, MOVE),
  BLOCK(IQ4_NL, "iq4_nl", 20, 32, 18, READ),
  BLOCK(IQ3_S, "iq3_s", 21, 256, 110, MOVE),
  BLOCK(IQ2_S, "iq2_s", 22, 256, 82, MOVE),
  BLOCK(IQ4_XS, "iq4_xs", 23, 256, 136, READ),
  BLOCK(IQ1_M, "iq1_m", 29, 256, 56, MOVE),
  BLOCK(TQ1_0, "tq1_0", 34, 256, 54, READ),
  BLOCK(TQ2_0, "tq2_0", 35, 256, 66, READ),
  BLOCK(MXFP4, "mxfp4", 39, 32, 17, READ),
  BLOCK(NVFP4, "nvfp4", 40, 64, 36, READ),
  BLOCK(Q1_0, "q1_0", 41, 128, 18, READ),
  BLOCK(Q2_0, "q2_0", 42, 64, 18, READ),
};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])
#define FIRST_BLOCK 22u         /* the row of the lowest number of a block format */

/* No row stands behind where it would if no number were missing; from there it is a few rows back. */
const tm_format_info *tm_format_find(uint32_t format) {
  const uint32_t most = format < TM_FORMAT_Q4_0 ? format : FIRST_BLOCK + 1 + (format - TM_FORMAT_Q4_0);
  size_t i = most < FORMAT_COUNT ? most : FORMAT_COUNT;
  while (i > 0 && formats[i - 1].format > format) i--;
  return i > 0 && formats[i - 1].format == format ? &formats[i - 1] : NULL;
}

const tm_format_info *tm_format_at(uint32_t index) { return index < FORMAT_COUNT ? &formats[index] : NULL; }

static bool is_usable_block(const tm_format_info *info, bool can_write) {
  return info->kind == TM_KIND_BLOCK && (can_write ? info->has_arithmetic : info->has_values);
}

const char *tm_format_list_blocks(bool can_write, char *out_text, uint64_t capacity) {
  uint64_t left = 0, used = 0;
  out_text[0] = '\0';
  for (size_t i = 0; i < FORMAT_COUNT; i++) left += is_usable_block(&formats[i], can_write);
  for (size_t i = 0; i < FORMAT_COUNT && used + 1 < capacity; i++) {
    if (!is_usable_block(&formats[i], can_write)) continue;
    const char *before = used == 0 ? "" : left == 1 ? " or " : ", ";
    used += (uint64_t)snprintf(out_text + used, (size_t)(capacity - used), "%s%s", before, formats[i].name);
    left--;
  }
  return out_text;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool equals_ignoring_case(const char *name, const char *text, uint64_t length) {
  if (strlen(name) != length) return false;
  for (uint64_t i = 0; i < length; i++)
    if (name[i] != lower(text[i])) return false;
  return true;
}

const tm_format_info *tm_format_by_name(const char *name, uint64_t length) {
  for (size_t i = 0; i < FORMAT_COUNT; i++)
    if (equals_ignoring_case(formats[i].name, name, length)) return &formats[i];
  return NULL;
}

const tm_format_info *tm_format_by_safetensors(const char *dtype, uint64_t length) {
  for (size_t i = 0; i < FORMAT_COUNT; i++) {
    const char *known = formats[i].safetensors;
    if (known != NULL && strlen(known) == length && memcmp(known, dtype, (size_t)length) == 0) return &formats[i];
  }
  return NULL;
}

const tm_format_info *tm_format_by_gguf(uint32_t gguf_type) {
  for (size_t i = 0; i < FORMAT_COUNT; i++)
    if (formats[i].gguf_type >= 0 && (uint32_t)formats[i].gguf_type == gguf_type) return &formats[i];
  return NULL;
}

bool tm_gguf_type_is_retired(uint32_t gguf_type) {
  return gguf_type == 4 || gguf_type == 5 || (gguf_type >= 31 && gguf_type <= 33) || (gguf_type >= 36 && gguf_type <= 38);
}

bool tm_format_bytes(const tm_format_info *info, uint64_t elements, uint64_t *out_bytes) {
  if (elements % info->block_elements != 0) return false;
  return tm_checked_mul(elements / info->block_elements, info->block_bytes, out_bytes);
}
