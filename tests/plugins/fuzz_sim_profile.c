/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sim_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What prices are made from is a number of a sensible size. */
static void check_good(const sim_profile *profile) {
  uint32_t known = 0;
  for (uint32_t i = 0; i < SIM_CLASSES; i++) {
    known += profile->is_known[i];
    if (!(fabs(profile->log2_factor[i]) <= 64)) __builtin_trap();
  }
  if (known == 0) __builtin_trap();
}

static void try_text(const char *text, size_t size) {
  static const char *const names[] = { "name", "0000" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char words[SIM_TEXT_BYTES] = { 0 };
    sim_profile profile = { .file = "a.profile" };
    snprintf(profile.device, sizeof profile.device, "%s", names[i]);
    if (sim_profile_parse(text, size, "a.profile", &profile, words)) check_good(&profile);
    else if (words[0] == '\0' || memchr(words, '\0', sizeof words) == NULL) __builtin_trap();
  }
}

/* A fuzzer does not guess checksums: each line once more with the right one. */
static void try_with_sums(const char *data, size_t size) {
  char *text = malloc(size * 18 + 18);
  size_t used = 0;
  if (text == NULL) return;
  for (size_t begin = 0; begin < size;) {
    const char *end = memchr(data + begin, '\n', size - begin);
    const size_t length = end == NULL ? size - begin : (size_t)(end - data) - begin;
    used += (size_t)snprintf(text + used, 18, "%016llx\t", (unsigned long long)XXH3_64bits(data + begin, length));
    memcpy(text + used, data + begin, length);
    used += length;
    text[used++] = '\n';
    begin += length + 1;
  }
  try_text(text, used);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try_text((const char *)data, size);
  try_with_sums((const char *)data, size);
  return 0;
}
