/* SPDX-License-Identifier: Apache-2.0 */
#include "base/processor.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LONGEST_LINE 16384

const char *tm_processor_architecture(void) { return TM_ARCHITECTURE; }

/* Which word heads the list depends on the architecture. */
static bool is_list(const char *line) {
  return strncasecmp(line, "flags", 5) == 0 || strncasecmp(line, "features", 8) == 0 || strncasecmp(line, "isa", 3) == 0;
}

static bool contains_word(const char *line, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = line; length != 0 && (at = strstr(at, word)) != NULL; at += length)
    if (at != line && isspace((unsigned char)at[-1]) && (at[length] == '\0' || isspace((unsigned char)at[length]))) return true;
  return false;
}

bool tm_processor_has(const char *feature, bool *out_known) {
  FILE *list = fopen("/proc/cpuinfo", "re");
  char line[LONGEST_LINE];
  bool has = false;
  *out_known = false;
  while (list != NULL && !*out_known && fgets(line, sizeof line, list) != NULL) {
    if (!is_list(line)) continue;
    *out_known = true;
    has = contains_word(line, feature);
  }
  if (list != NULL) fclose(list);
  return has;
}
