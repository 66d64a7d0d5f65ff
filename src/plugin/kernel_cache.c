/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kernel_cache.h"

#include <string.h>

#include "base/checked.h"

#define LARGEST_CACHE_BYTES (UINT64_C(64) << 20)

struct tm_kernel_cache_entry {
  tm_kernel_cache_entry *older;
  uint64_t bytes;               /* of the whole allocation */
  uint64_t owner_length;
  uint64_t key_length;
  uint64_t data_length;
  char     content[];           /* owner, key, data */
};

tm_status tm_kernel_cache_init(tm_kernel_cache *cache, tm_memory *memory) {
  memset(cache, 0, sizeof *cache);
  cache->memory = memory;
  return tm_mutex_init(&cache->lock);
}

void tm_kernel_cache_deinit(tm_kernel_cache *cache) {
  while (cache->newest != NULL) {
    tm_kernel_cache_entry *entry = cache->newest;
    cache->newest = entry->older;
    tm_memory_free(cache->memory, entry, entry->bytes);
  }
  tm_mutex_deinit(&cache->lock);
}

static tm_kernel_cache_entry *find(const tm_kernel_cache *cache, const char *owner, tm_string key) {
  const uint64_t owner_length = strlen(owner);
  for (tm_kernel_cache_entry *entry = cache->newest; entry != NULL; entry = entry->older) {
    if (entry->owner_length == owner_length && entry->key_length == key.length &&
        memcmp(entry->content, owner, owner_length) == 0 &&
        memcmp(entry->content + owner_length, key.data, key.length) == 0)
      return entry;
  }
  return NULL;
}

tm_status tm_kernel_cache_get(tm_kernel_cache *cache, const char *owner, tm_string key, void *out_data, uint64_t *inout_bytes) {
  tm_mutex_lock(&cache->lock);
  const tm_kernel_cache_entry *entry = find(cache, owner, key);
  if (entry != NULL) {
    const uint64_t copied = tm_min_u64(entry->data_length, *inout_bytes);
    if (copied != 0) memcpy(out_data, entry->content + entry->owner_length + entry->key_length, copied);
    *inout_bytes = entry->data_length;
  }
  tm_mutex_unlock(&cache->lock);
  return entry != NULL ? TM_OK : TM_ERROR_NOT_FOUND;
}

tm_status tm_kernel_cache_put(tm_kernel_cache *cache, const char *owner, tm_string key, const void *data, uint64_t bytes) {
  const uint64_t owner_length = strlen(owner);
  uint64_t total;
  if (!tm_checked_add(sizeof(tm_kernel_cache_entry) + owner_length, key.length, &total) ||
      !tm_checked_add(total, bytes, &total) || total > LARGEST_CACHE_BYTES)
    return TM_ERROR_LIMIT;
  tm_kernel_cache_entry *entry = tm_memory_alloc(cache->memory, total, 0);
  if (entry == NULL) return TM_ERROR_NO_MEMORY;
  *entry = (tm_kernel_cache_entry){ NULL, total, owner_length, key.length, bytes };
  memcpy(entry->content, owner, owner_length);
  if (key.length != 0) memcpy(entry->content + owner_length, key.data, key.length);
  if (bytes != 0) memcpy(entry->content + owner_length + key.length, data, bytes);
  tm_mutex_lock(&cache->lock);
  const int fits = cache->bytes + total <= LARGEST_CACHE_BYTES && find(cache, owner, key) == NULL;
  if (fits) {
    entry->older = cache->newest;
    cache->newest = entry;
    cache->bytes += total;
  }
  tm_mutex_unlock(&cache->lock);
  if (!fits) tm_memory_free(cache->memory, entry, total);
  return fits ? TM_OK : TM_ERROR_LIMIT;
}
