/* SPDX-License-Identifier: Apache-2.0 */
#include "nearest_name.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 63

static char folded(char c) {
  if (c == '_') return '-';
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

unsigned tm_name_distance(const char *a, const char *b) {
  unsigned rows[3][LONGEST + 1];
  const size_t a_length = strnlen(a, LONGEST), b_length = strnlen(b, LONGEST);
  unsigned *before = rows[0], *previous = rows[1], *current = rows[2];
  for (unsigned j = 0; j <= b_length; j++) previous[j] = before[j] = j;
  for (size_t i = 1; i <= a_length; i++) {
    current[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      const unsigned differs = folded(a[i - 1]) != folded(b[j - 1]);
      current[j] = least(previous[j - 1] + differs, least(previous[j], current[j - 1]) + 1);
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]))
        current[j] = least(current[j], before[j - 2] + 1);
    }
    unsigned *free_row = before;
    before = previous;
    previous = current;
    current = free_row;
  }
  return previous[b_length];
}

/* What was left out begins a word of its own: "f8" of "f8_e5m2". */
static bool is_begun(const char *wanted, size_t length, const char *candidate) {
  return length >= 2 && strncmp(wanted, candidate, length) == 0 && folded(candidate[length]) == '-';
}

void tm_nearest_name_init(tm_nearest_name *nearest, const char *wanted) {
  nearest->wanted = wanted;
  nearest->best = NULL;
  nearest->best_distance = UINT_MAX;
}

void tm_nearest_name_offer(tm_nearest_name *nearest, const char *candidate) {
  const size_t length = strlen(nearest->wanted);
  /* A third of the letters and one may be wrong, of three or fewer one; more is no likeness.  What was only begun is one, too. */
  const unsigned tolerated = length <= 3 ? 1 : (unsigned)(length / 3 + 1);
  unsigned       distance = tm_name_distance(nearest->wanted, candidate);
  if (length >= 3 && strncmp(nearest->wanted, candidate, length) == 0) distance = 1;
  if (is_begun(nearest->wanted, length, candidate)) distance = 0;
  if (distance > tolerated || distance >= nearest->best_distance) return;
  snprintf(nearest->text, sizeof nearest->text, "%s", candidate);
  nearest->best = nearest->text;
  nearest->best_distance = distance;
}
