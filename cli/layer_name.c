/* SPDX-License-Identifier: Apache-2.0 */
#include "layer_name.h"

#include <string.h>

/* Longer ones are no numbers of layers, and would not fit. */
#define MOST_DIGITS 9u

static bool is_separator(char c) { return c == '.' || c == '/'; }

static size_t part_length(const char *text, size_t length) {
  size_t i = 0;
  while (i < length && !is_separator(text[i])) i++;
  return i;
}

static bool read_number(const char *part, size_t length, uint64_t *out_number) {
  uint64_t number = 0;
  if (length == 0 || length > MOST_DIGITS) return false;
  for (size_t i = 0; i < length; i++) {
    if (part[i] < '0' || part[i] > '9') return false;
    number = 10 * number + (uint64_t)(part[i] - '0');
  }
  *out_number = number;
  return true;
}

tm_layer_name tm_layer_name_split(const char *name, size_t length, char *out_kind) {
  tm_layer_name split = { .layer = TM_NO_LAYER };
  for (size_t i = 0; i < length; i++) {
    const size_t part = part_length(name + i, length - i);
    uint64_t     number = 0;
    const bool   is_number = read_number(name + i, part, &number);
    if (is_number)
      out_kind[split.kind_length++] = '*';
    else
      memcpy(out_kind + split.kind_length, name + i, part);
    if (!is_number) split.kind_length += part;
    i += part;
    if (i < length) out_kind[split.kind_length++] = name[i];
    if (!is_number || split.layer != TM_NO_LAYER) continue;
    split.layer = number;
    split.prefix_length = split.kind_length;
  }
  return split;
}
