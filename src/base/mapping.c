/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/mapping.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

tm_status tm_mapping_init(tm_mapping *mapping, int descriptor, uint64_t byte_count) {
  uint64_t page_bytes;
  *mapping = (tm_mapping){ 0 };
  if (byte_count > PTRDIFF_MAX) return TM_UNSUPPORTED;
  void *bytes = mmap(NULL, (size_t)byte_count, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (bytes == MAP_FAILED) return TM_UNSUPPORTED;
  if (!tm_checked_round_up(byte_count, (uint64_t)sysconf(_SC_PAGESIZE), &page_bytes)) page_bytes = byte_count;
  tm_fault_range *range = tm_fault_guard_enter(bytes, page_bytes, false);
  if (range == NULL) {
    (void)munmap(bytes, (size_t)byte_count);
    return TM_UNSUPPORTED;
  }
  (void)madvise(bytes, (size_t)byte_count, MADV_SEQUENTIAL);    /* longer read-ahead; jobs walk a file from end to end */
  *mapping = (tm_mapping){ .bytes = bytes, .byte_count = byte_count, .range = range };
  return TM_OK;
}

void tm_mapping_deinit(tm_mapping *mapping) {
  if (mapping->bytes == NULL) return;
  tm_fault_guard_leave(mapping->range);
  (void)munmap((void *)(uintptr_t)mapping->bytes, (size_t)mapping->byte_count);
  *mapping = (tm_mapping){ 0 };
}

/* Large enough that threads do not meet in the same tables. */
#define FORGOTTEN_AT_ONCE (UINT64_C(16) << 20)
#define MOST_SHARES 64u

static void forget_pages(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const tm_mapping *mapping = argument;
  const uint64_t    first = begin * FORGOTTEN_AT_ONCE, past = tm_min_u64(end * FORGOTTEN_AT_ONCE, mapping->byte_count);
  (void)lane;
  (void)madvise((char *)(uintptr_t)mapping->bytes + first, (size_t)(past - first), MADV_DONTNEED);
}

void tm_mapping_forget_pages(const tm_mapping *mapping, tm_pool *pool) {
  const uint64_t count = tm_divide_up(mapping->byte_count, FORGOTTEN_AT_ONCE);
  if (mapping->bytes != NULL && count > 1)
    tm_pool_run(pool, count, tm_divide_up(count, MOST_SHARES), forget_pages, (void *)(uintptr_t)mapping);
}

uint64_t tm_mapping_fault_offset(const tm_mapping *mapping) {
  return mapping->range == NULL ? TM_NO_FAULT : tm_fault_guard_offset(mapping->range);
}
