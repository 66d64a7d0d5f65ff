/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_cache.h - what backends ask the host to keep: compiled kernels, by backend build and key.  Bounded.  [any thread] */
#ifndef TM_PLUGIN_KERNEL_CACHE_H
#define TM_PLUGIN_KERNEL_CACHE_H

#include "base/memory.h"
#include "base/thread.h"
#include "tensormorph/types.h"

typedef struct tm_kernel_cache_entry tm_kernel_cache_entry;

typedef struct tm_kernel_cache {
  tm_memory             *memory;
  tm_kernel_cache_entry *newest;
  uint64_t               bytes;
  tm_mutex               lock;
} tm_kernel_cache;

tm_status tm_kernel_cache_init(tm_kernel_cache *cache, tm_memory *memory);
void      tm_kernel_cache_deinit(tm_kernel_cache *cache);
/* As tm_host.cache_get and cache_put; `owner` is the build id of the backend. */
tm_status tm_kernel_cache_get(tm_kernel_cache *cache, const char *owner, tm_string key, void *out_data, uint64_t *inout_bytes);
tm_status tm_kernel_cache_put(tm_kernel_cache *cache, const char *owner, tm_string key, const void *data, uint64_t bytes);

#endif
