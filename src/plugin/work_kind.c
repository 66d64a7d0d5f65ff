/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/work_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/format.h"

tm_work_kind tm_work_kind_of(const tm_operation *operation) {
  tm_work_kind kind;
  memset(&kind, 0, sizeof kind);
  kind.op = operation->op;
  kind.format_count = (uint32_t)tm_min_u64(TM_MAX_OPERANDS, (uint64_t)operation->input_count + operation->output_count);
  for (uint32_t i = 0; i < kind.format_count; i++) kind.formats[i] = operation->operands[i].format;
  return kind;
}

bool tm_work_kind_equal(const tm_work_kind *a, const tm_work_kind *b) {
  return a->op == b->op && a->format_count == b->format_count &&
         memcmp(a->formats, b->formats, a->format_count * sizeof a->formats[0]) == 0;
}

void tm_work_kind_formats(const tm_work_kind *kind, char *text, uint64_t capacity) {
  uint64_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < kind->format_count && used < capacity; i++) {
    const tm_format_info *info = tm_format_find(kind->formats[i]);
    const char *separator = i == 0 ? "" : ",";
    const int length = info != NULL ? snprintf(text + used, capacity - used, "%s%s", separator, info->name)
                                    : snprintf(text + used, capacity - used, "%s0x%x", separator, kind->formats[i]);
    used += length < 0 ? 0 : (uint64_t)length;
  }
}

/* ---- in files ---- */

_Static_assert(TM_WORK_KIND_BYTES > 9 * (TM_MAX_OPERANDS + 1), "eight digits and a separator each");

void tm_work_kind_print(const tm_work_kind *kind, char text[TM_WORK_KIND_BYTES]) {
  int used = snprintf(text, TM_WORK_KIND_BYTES, "%x\t", kind->op);
  for (uint32_t i = 0; i < kind->format_count; i++)
    used += snprintf(text + used, (size_t)(TM_WORK_KIND_BYTES - used), "%s%x", i == 0 ? "" : ",", kind->formats[i]);
}

/* Digits and nothing else: strtoul takes signs and spaces, too. */
static bool parse_number(const char **text, uint32_t *out_number) {
  const size_t digits = strspn(*text, "0123456789abcdef");
  if (digits == 0 || digits > 8) return false;
  *out_number = (uint32_t)strtoul(*text, NULL, 16);
  *text += digits;
  return true;
}

bool tm_work_kind_parse(const char *op, const char *formats, tm_work_kind *out_kind) {
  memset(out_kind, 0, sizeof *out_kind);
  if (!parse_number(&op, &out_kind->op) || *op != '\0') return false;
  while (*formats != '\0') {
    if (out_kind->format_count == TM_MAX_OPERANDS || !parse_number(&formats, &out_kind->formats[out_kind->format_count++])) return false;
    if (*formats != ',' && *formats != '\0') return false;
    formats += *formats == ',';
  }
  return true;
}
