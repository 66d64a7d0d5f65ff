/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/shard_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tm_status read(tm_shard_index *index, tm_memory *memory, char *text, size_t size, int keeps_flaws) {
  tm_error error = TM_ERROR_INIT;
  return keeps_flaws != 0 ? tm_shard_index_init_flawed(index, memory, "fuzz", text, size, &error)
                          : tm_shard_index_init(index, memory, "fuzz", text, size, &error);
}

static void check_index(const tm_shard_index *index) {
  for (uint64_t i = 0; i < index->entry_count; i++)
    if (index->entries[i].shard >= index->shard_count) __builtin_trap();
  for (uint64_t i = 0; i < index->shard_count; i++) {
    const char *name = index->shards[i].file_name.data;
    if (name[0] == '/' || name[0] == '\0' || strncmp(name, "../", 3) == 0 || strstr(name, "/../") != NULL) __builtin_trap();
    if (strlen(name) != index->shards[i].file_name.length) __builtin_trap();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tm_memory memory;
  tm_shard_index index;
  bool is_whole = false;
  char *text = malloc(size + 1);
  if (text == NULL) return 0;
  for (int keeps_flaws = 0; keeps_flaws < 2; keeps_flaws++) {
    memcpy(text, data, size);
    tm_memory_init(&memory, (UINT64_C(1) << 20) + 512 * size);  /* a flaw has a text */
    const tm_status status = read(&index, &memory, text, size, keeps_flaws);
    if (status != TM_OK && status != TM_ERROR_CORRUPT) __builtin_trap();
    if (status == TM_OK) check_index(&index);
    if (is_whole && (status != TM_OK || index.flaw_count != 0)) __builtin_trap();
    is_whole = status == TM_OK;
    tm_shard_index_deinit(&index);
    if (memory.used_bytes != 0) __builtin_trap();
  }
  free(text);
  return 0;
}
