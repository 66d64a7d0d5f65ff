/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "schedule/profile_merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was accepted is in range, and comes out as it went in. */
static void check(void *context, const tm_profile_record *record) {
  char line[TM_PROFILE_LINE_BYTES];
  tm_profile_record again;
  const uint64_t length = tm_profile_record_print(record, line);
  if (length == 0 || length > sizeof line || line[length - 1] != '\n') __builtin_trap();
  if (!tm_profile_record_parse(line, length - 1, &again) || memcmp(&again, record, sizeof again) != 0) __builtin_trap();
  if (record->kind == TM_PROFILE_ENTRY && record->entry.node.fresh.weight > TM_LARGEST_WEIGHT) __builtin_trap();
  tm_profile_merge_take(context, record);
}

static void read_all(tm_profile_merge *merge, const char *text, size_t size) {
  const tm_profile_flaws flaws = tm_profile_text_read(text, size, check, merge);
  if ((flaws.is_foreign || flaws.version != 0) && merge->owner_count != 0) __builtin_trap();
}

/* A fuzzer does not guess checksums: each line once more with the right one. */
static size_t add_sums(const char *data, size_t size, char *text) {
  size_t used = 0;
  for (size_t begin = 0; begin < size;) {
    const char *end = memchr(data + begin, '\n', size - begin);
    const size_t length = end == NULL ? size - begin : (size_t)(end - data) - begin;
    used += (size_t)snprintf(text + used, 18, "%016llx\t", (unsigned long long)XXH3_64bits(data + begin, length));
    memcpy(text + used, data + begin, length);
    used += length;
    text[used++] = '\n';
    begin += length + 1;
  }
  return used;
}

static void read_fresh(tm_memory *memory, const char *text, size_t size) {
  tm_profile_merge merge;
  char *printed = NULL;
  uint64_t bytes = 0, room = 0;
  if (tm_profile_merge_init(&merge, memory) != TM_OK) return;
  read_all(&merge, text, size);
  if (tm_profile_merge_print(&merge, 7, &printed, &bytes, &room) == TM_OK) {
    const tm_profile_flaws flaws = tm_profile_text_read(printed, bytes, check, &merge);
    if (flaws.is_foreign || flaws.version != 0 || flaws.damaged_count != 0) __builtin_trap();
    tm_memory_free(memory, printed, room);
  }
  tm_correction_promote(&merge.entries);
  for (uint32_t owner = 0; owner < merge.owner_count; owner++) {
    const tm_correction_key key = { owner, TM_CLASS_MATMUL, 5, 0 };
    (void)tm_correction_look(&merge.entries, &key);
    (void)tm_correction_copy_ns(&merge.entries, owner, size);
    (void)tm_correction_setup_ns(&merge.entries, owner, 1, size);
  }
  tm_profile_merge_deinit(&merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tm_memory memory;
  tm_memory_init(&memory, UINT64_C(64) << 20);
  read_fresh(&memory, (const char *)data, size);
  char *text = malloc(size * 19 + 19);
  if (text == NULL) return 0;
  read_fresh(&memory, text, add_sums((const char *)data, size, text));
  free(text);
  if (atomic_load(&memory.used_bytes) != 0) __builtin_trap();
  return 0;
}
