/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/process_children.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_STEPS 100
#define STEP_NS 15000000l
#define GENERATIONS 64

void process_children_adopt(void) { (void)prctl(PR_SET_CHILD_SUBREAPER, 1); }

/* Parent and state of a process; the name before them, in parentheses, may hold anything. */
static bool read_stat(const char *entry, char *out_state, pid_t *out_parent) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%.20s/stat", entry);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  const char *end = strrchr(text, ')');
  int parent = 0;
  if (end == NULL || sscanf(end + 1, " %c %d", out_state, &parent) != 2) return false;
  *out_parent = parent;
  return true;
}

static bool has_any(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* Those that run, or all. */
static void read_children(process_children *out, bool running_only) {
  const pid_t self = getpid();
  out->count = 0;
  DIR *folder = has_any() ? opendir("/proc") : NULL;
  if (folder == NULL) return;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL && out->count < PROCESS_MOST_CHILDREN;) {
    char state = 0;
    pid_t parent = 0;
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_stat(entry->d_name, &state, &parent)) continue;
    if (parent == self && !(running_only && state == 'Z')) out->items[out->count++] = (pid_t)strtol(entry->d_name, NULL, 10);
  }
  closedir(folder);
}

void process_children_read(process_children *out) { read_children(out, false); }

static bool contains(const process_children *all, pid_t child) {
  for (uint32_t i = 0; i < all->count; i++)
    if (all->items[i] == child) return true;
  return false;
}

/* Others were there that it has no place for. */
static bool may_lack_some(const process_children *before) { return before->count == PROCESS_MOST_CHILDREN; }

static uint32_t count_new(const process_children *before) {
  process_children now;
  uint32_t count = 0;
  if (may_lack_some(before)) return 0;
  read_children(&now, true);
  for (uint32_t i = 0; i < now.count; i++) count += !contains(before, now.items[i]);
  return count;
}

uint32_t process_children_count(const process_children *before) {
  const struct timespec moment = { 0, STEP_NS };
  uint32_t count = count_new(before);
  for (int i = 0; i < PATIENCE_STEPS && count != 0; i++) {
    nanosleep(&moment, NULL);
    count = count_new(before);
  }
  return count;
}

/* Until none is left: the children of one that is ended come here. */
uint32_t process_children_end(const process_children *before) {
  const uint32_t count = process_children_count(before);
  for (int i = 0; i < GENERATIONS && !may_lack_some(before); i++) {
    process_children now;
    uint32_t left = 0;
    process_children_read(&now);
    for (uint32_t k = 0; k < now.count; k++) {
      if (contains(before, now.items[k])) continue;
      left++;
      kill(now.items[k], SIGKILL);
      while (waitpid(now.items[k], NULL, 0) < 0 && errno == EINTR) {
      }
    }
    if (left == 0) break;
  }
  return count;
}
