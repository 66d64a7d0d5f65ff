/* SPDX-License-Identifier: Apache-2.0 */
/* nearest_name.h - what somebody may have meant by a name that does not exist. */
#ifndef TM_CLI_NEAREST_NAME_H
#define TM_CLI_NEAREST_NAME_H

/* Feed it candidates one by one; the best so far is kept as a copy. */
typedef struct tm_nearest_name {
  const char *wanted;
  const char *best;             /* NULL: nothing comes close */
  unsigned    best_distance;
  char        text[128];
} tm_nearest_name;

void tm_nearest_name_init(tm_nearest_name *nearest, const char *wanted);
void tm_nearest_name_offer(tm_nearest_name *nearest, const char *candidate);

/* Insertions, deletions, replacements and swaps of neighbours, case ignored; names longer than 63 bytes are cut. */
unsigned tm_name_distance(const char *a, const char *b);

#endif
