/* SPDX-License-Identifier: Apache-2.0 */
#include "process_traces.h"

#include <dirent.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

extern char **environ;

#define PAUSES 20               /* of 5 ms: a thread that was joined may still be listed for a moment */

static uint32_t count_threads(void) {
  DIR *folder = opendir("/proc/self/task");
  uint32_t count = 0;
  if (folder == NULL) return 0;
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) count += entry->d_name[0] != '.';
  (void)closedir(folder);
  return count;
}

static uint64_t text_hash(const char *text) { return text == NULL ? 0 : XXH3_64bits(text, strlen(text)); }

static uint64_t environment_hash(void) {
  uint64_t sum = 0;
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++) sum += text_hash(*variable);
  return sum;
}

static uint64_t folder_hash(void) {
  char path[4096];
  return text_hash(getcwd(path, sizeof path));
}

static uint64_t streams_hash(void) {
  uint64_t words[9];
  memset(words, 0, sizeof words);
  for (int i = 0; i < 3; i++) {
    struct stat found;
    if (fstat(i, &found) != 0) continue;
    words[3 * i] = (uint64_t)found.st_dev;
    words[3 * i + 1] = (uint64_t)found.st_ino;
    words[3 * i + 2] = (uint64_t)found.st_rdev;
  }
  return XXH3_64bits(words, sizeof words);
}

void process_traces_take(process_traces *out_traces) {
  memset(out_traces, 0, sizeof *out_traces);
  out_traces->thread_count = count_threads();
  out_traces->environment = environment_hash();
  out_traces->folder = folder_hash();
  out_traces->locale = text_hash(setlocale(LC_ALL, NULL));
  out_traces->streams = streams_hash();
  out_traces->mask = umask(0);
  (void)umask(out_traces->mask);
  for (int i = 1; i < TRACED_SIGNALS; i++) (void)sigaction(i, NULL, &out_traces->handlers[i]);
}

static int same_handler(const struct sigaction *a, const struct sigaction *b) {
  return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags;
}

static void add(char *text, size_t capacity, const char *what) {
  const size_t used = strlen(text);
  (void)snprintf(text + used, capacity - used, "%s%s", used == 0 ? "in its trial it " : ", ", what);
}

static void compare_threads(const process_traces *before, const process_traces *after, char *text, size_t capacity) {
  uint32_t count = after->thread_count;
  for (int i = 0; i < PAUSES && count > before->thread_count; i++) {
    (void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    count = count_threads();
  }
  char what[64];
  if (count <= before->thread_count) return;
  (void)snprintf(what, sizeof what, "left %u thread%s behind", count - before->thread_count, count - before->thread_count == 1 ? "" : "s");
  add(text, capacity, what);
}

static void compare_handlers(const process_traces *before, const process_traces *after, char *text, size_t capacity) {
  for (int i = 1; i < TRACED_SIGNALS; i++) {
    char what[64];
    if (same_handler(&before->handlers[i], &after->handlers[i])) continue;
    (void)snprintf(what, sizeof what, "changed the handler of signal %d", i);
    add(text, capacity, what);
  }
}

void process_traces_compare(const process_traces *before, const process_traces *after, bool float_mode_changed, char *out_text,
                            size_t capacity) {
  out_text[0] = '\0';
  compare_threads(before, after, out_text, capacity);
  compare_handlers(before, after, out_text, capacity);
  if (before->environment != after->environment) add(out_text, capacity, "changed the environment");
  if (before->folder != after->folder) add(out_text, capacity, "changed the working directory");
  if (before->locale != after->locale) add(out_text, capacity, "changed the locale");
  if (before->streams != after->streams) add(out_text, capacity, "changed a standard stream");
  if (before->mask != after->mask) add(out_text, capacity, "changed the file mode mask");
  if (float_mode_changed) add(out_text, capacity, "changed the floating-point mode");
}
