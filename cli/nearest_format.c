/* SPDX-License-Identifier: Apache-2.0 */
#include "nearest_format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tensormorph/tensormorph.h"

typedef struct other_word {
  const char *word;             /* of another program: all of a name, or what comes before its digits */
  const char *own;
} other_word;

static const other_word whole_words[] = { { "half", "f16" }, { "float", "f32" }, { "single", "f32" }, { "double", "f64" } };
static const other_word beginnings[] = { { "bfloat", "bf" }, { "float", "f" }, { "fp", "f" }, { "uint", "u" }, { "int", "i" } };

/* "torch.float16", "np.float16" */
static const char *behind_dot(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot == NULL ? name : dot + 1;
}

static bool translate(const char *name, char *out, size_t capacity) {
  for (size_t i = 0; i < sizeof whole_words / sizeof whole_words[0]; i++)
    if (strcasecmp(name, whole_words[i].word) == 0) return snprintf(out, capacity, "%s", whole_words[i].own) > 0;
  for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
    const size_t length = strlen(beginnings[i].word);
    if (strncasecmp(name, beginnings[i].word, length) != 0 || name[length] < '0' || name[length] > '9') continue;
    const int used = snprintf(out, capacity, "%s%s", beginnings[i].own, name + length);
    return used > 0 && (size_t)used < capacity && tm_format_lookup(out) != TM_FORMAT_NONE;
  }
  const int used = snprintf(out, capacity, "%.59s", name);
  if (tm_format_lookup(out) != TM_FORMAT_NONE) return true;
  /* "q8": the plainest of its family. */
  return used > 0 && (size_t)used + 3 <= capacity && snprintf(out + used, capacity - (size_t)used, "_0") > 0 &&
         tm_format_lookup(out) != TM_FORMAT_NONE;
}

void tm_nearest_format_find(tm_nearest_name *out_nearest, const char *name) {
  tm_format_description format = { .struct_size = sizeof format };
  char                  own[64];
  tm_nearest_name_init(out_nearest, name);
  if (translate(behind_dot(name), own, sizeof own)) {
    snprintf(out_nearest->text, sizeof out_nearest->text, "%s", tm_format_name(tm_format_lookup(own)));
    out_nearest->best = out_nearest->text;
    return;
  }
  for (uint32_t i = 0; tm_format_describe(i, &format) == TM_OK; i++) tm_nearest_name_offer(out_nearest, format.name);
}
