/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system_stamp.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define LOADER_CACHE "/etc/ld.so.cache"

/* The dynamic loader reads these before anybody could tell that it did. */
static const char *const loader_variables[] = { "LD_LIBRARY_PATH", "LD_PRELOAD" };

uint64_t tm_system_stamp_variable(uint64_t stamp, const char *name) {
  const char *value = getenv(name);
  const uint64_t named = XXH3_64bits_withSeed(name, strlen(name), stamp);
  return value == NULL ? named : XXH3_64bits_withSeed(value, strlen(value), named + 1);
}

static uint64_t content(const char *path) {
  char text[64];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof text);
  close(file);
  return got <= 0 ? 0 : XXH3_64bits(text, (size_t)got);
}

uint64_t tm_system_stamp_file(uint64_t stamp, const char *path) {
  struct stat found;
  uint64_t words[8] = { stamp };
  if (stat(path, &found) == 0) {
    words[1] = (uint64_t)found.st_dev;
    words[2] = (uint64_t)found.st_ino;
    words[3] = (uint64_t)found.st_size;
    words[4] = (uint64_t)found.st_mtim.tv_sec;
    words[5] = (uint64_t)found.st_mtim.tv_nsec;
    words[6] = (uint64_t)found.st_ctim.tv_sec;
    words[7] = (uint64_t)found.st_ctim.tv_nsec;
  }
  return XXH3_64bits_withSeed(words, sizeof words, XXH3_64bits(path, strlen(path)));
}

uint64_t tm_system_stamp(void) {
  uint64_t stamp = tm_system_stamp_file(content(BOOT_ID), LOADER_CACHE);
  for (size_t i = 0; i < sizeof loader_variables / sizeof loader_variables[0]; i++)
    stamp = tm_system_stamp_variable(stamp, loader_variables[i]);
  return stamp;
}
