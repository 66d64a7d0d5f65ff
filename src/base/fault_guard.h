/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_guard.h - makes reading a mapped file that has been truncated meanwhile safe: instead of SIGBUS the reader sees
 * zeros, and the offset is kept.  This is the library's only process-wide state (docs/decisions/003-sigbus-guard.md).
 * Used by mapping.c and claimed_file.c only.
 */
#ifndef TM_BASE_FAULT_GUARD_H
#define TM_BASE_FAULT_GUARD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tm_fault_range tm_fault_range;

/* Protects the mapped pages [begin, begin + bytes) from now on; whole pages, which are also written if `is_writable`.  The
   first call installs the handler.  NULL when no more ranges can be protected: then do not map.  Any thread. */
tm_fault_range *tm_fault_guard_enter(const void *begin, uint64_t bytes, bool is_writable);

/* Before the pages are unmapped.  The last call puts the previous handler back.  NULL is accepted.  Any thread. */
void tm_fault_guard_leave(tm_fault_range *range);

#define TM_NO_FAULT UINT64_MAX
/* The lowest offset at which reading failed, or TM_NO_FAULT.  Any thread. */
uint64_t tm_fault_guard_offset(const tm_fault_range *range);

#endif
