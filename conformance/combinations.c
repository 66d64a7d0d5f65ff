/* SPDX-License-Identifier: Apache-2.0 */
/* Which formats an operation takes is found out by its own shape rules: whatever infers is a combination. */
#include "conformance/question.h"

#define TRIES 4

/* One of each kind for operations that move bits, and all that can be computed with. */
static const uint32_t formats[] = {
  TM_FORMAT_F32, TM_FORMAT_F64, TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2, TM_FORMAT_I4, TM_FORMAT_U4,
  TM_FORMAT_I8, TM_FORMAT_U8, TM_FORMAT_I16, TM_FORMAT_U16, TM_FORMAT_I32, TM_FORMAT_U32, TM_FORMAT_I64, TM_FORMAT_U64,
  TM_FORMAT_BOOL, TM_FORMAT_C64, TM_FORMAT_F8_E8M0, TM_FORMAT_F6_E2M3, TM_FORMAT_F4_E2M1, TM_FORMAT_Q8_0, TM_FORMAT_Q4_0,
  TM_FORMAT_Q4_K, TM_FORMAT_MXFP4,
};
#define FORMATS (sizeof formats / sizeof formats[0])

static bool append(combination_list *list, const combination *one) {
  if (list->count == list->capacity) {
    const uint32_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
    combination *grown = realloc(list->items, capacity * sizeof *grown);
    if (grown == NULL) return false;
    list->items = grown;
    list->capacity = capacity;
  }
  list->items[list->count++] = *one;
  return true;
}

static bool is_taken(const combination *one) {
  kernel_case c;
  uint64_t state = 1;
  for (int i = 0; i < TRIES; i++)
    if (case_make(&c, one->row, one->inputs, one->formats, 64, &state)) return true;
  return false;
}

/* Of several inputs most formats go with no others, whatever the output; the usual output tells at once. */
static bool add_outputs(combination_list *list, combination *one) {
  one->formats[one->inputs] = TM_FORMAT_NONE;
  if (one->inputs > 1 && !is_taken(one)) return true;
  for (size_t y = 0; y < FORMATS; y++) {
    one->formats[one->inputs] = formats[y];
    if (is_taken(one) && !append(list, one)) return false;
  }
  return true;
}

static bool add_inputs(combination_list *list, combination *one) {
  for (size_t a = 0; a < FORMATS; a++) {
    for (size_t b = 0; b < (one->inputs > 1 ? FORMATS : 1); b++) {
      one->formats[0] = formats[a];
      if (one->inputs > 1) one->formats[1] = formats[b];
      case_fill_formats(one->row, one->inputs, one->formats);
      if (!add_outputs(list, one)) return false;
    }
  }
  return true;
}

bool combination_list_add(combination_list *list, const tm_op_row *row) {
  if (row->reference == NULL) return true;
  for (uint32_t inputs = row->input_min; inputs <= case_most_inputs(row); inputs++) {
    combination one = { .row = row, .inputs = inputs };
    if (!add_inputs(list, &one)) return false;
  }
  return true;
}

void combination_list_free(combination_list *list) { free(list->items); }
