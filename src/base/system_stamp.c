/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system_stamp.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

extern char **environ;

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define LOADER_CACHE "/etc/ld.so.cache"

/* What comes and goes with a shell's state, a window or a session, and no driver looks at.  A name that ends in * stands for
   all that begin so.  The library's own variables reach backends as options, which are part of every key themselves. */
static const char *const passing[] = {
  "PWD", "OLDPWD", "SHLVL", "_", "TERM", "COLUMNS", "LINES", "WINDOWID", "SSH_*", "XDG_SESSION_ID", "TMUX*", "STY", "WINDOW",
  "PS1", "PS2", "PROMPT*", "TENSORMORPH_*", "HISTFILE", "INVOCATION_ID", "JOURNAL_STREAM",
};

static bool is_passing(const char *variable) {
  const size_t length = strcspn(variable, "=");
  for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
    const size_t known = strlen(passing[i]);
    if (passing[i][known - 1] == '*' ? strncmp(variable, passing[i], known - 1) == 0
                                     : length == known && memcmp(variable, passing[i], known) == 0)
      return true;
  }
  return false;
}

/* A sum, so that the order of variables makes no difference. */
static uint64_t environment(void) {
  uint64_t sum = 0;
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++)
    if (!is_passing(*variable)) sum += XXH3_64bits(*variable, strlen(*variable));
  return sum;
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
  uint64_t words[6] = { stamp };
  if (stat(path, &found) == 0) {
    words[1] = (uint64_t)found.st_dev;
    words[2] = (uint64_t)found.st_ino;
    words[3] = (uint64_t)found.st_size;
    words[4] = (uint64_t)found.st_mtim.tv_sec;
    words[5] = (uint64_t)found.st_mtim.tv_nsec;
  }
  return XXH3_64bits_withSeed(words, sizeof words, XXH3_64bits(path, strlen(path)));
}

uint64_t tm_system_stamp(void) {
  const uint64_t words[2] = { content(BOOT_ID), environment() };
  return tm_system_stamp_file(XXH3_64bits(words, sizeof words), LOADER_CACHE);
}
