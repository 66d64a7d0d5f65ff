/* SPDX-License-Identifier: Apache-2.0 */
/* free_memory.h - whether there is room for tests with large tensors. */
#ifndef TM_TESTS_FREE_MEMORY_H
#define TM_TESTS_FREE_MEMORY_H

#include <stdint.h>
#include <stdio.h>

static inline uint64_t available_bytes(void) {
  FILE *file = fopen("/proc/meminfo", "r");
  char line[256];
  unsigned long long kib = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
  if (file != NULL) fclose(file);
  return kib * 1024;
}

#endif
