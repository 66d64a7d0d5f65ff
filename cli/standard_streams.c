/* SPDX-License-Identifier: Apache-2.0 */
#include "standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tm_standard_streams_claim(void) {
  /* Open for the other direction: neither reading the input nor writing the output works. */
  static const int modes[] = { [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY };
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
    /* The lowest free number is given, and all below are taken. */
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", modes[stream]);
}

#define LEAST_COPY 10           /* none that a careless library guesses */

static int output_copy = -1;    /* where the output is now; -1: where it was */

FILE *tm_standard_streams_take_output(void) {
  const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, LEAST_COPY);
  FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
  if (file == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    if (file != NULL) fclose(file);
    else if (copy >= 0) close(copy);
    return NULL;
  }
  output_copy = copy;
  return file;
}

#define MOST_LINKS 16
#define LONGEST_PATH 4096

static bool is_name_of_output(const char *path) {
  static const char *const names[] = { "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(path, names[i]) == 0) return true;
  return false;
}

/* Where a link in `path` leads, in its place; false: it is none. */
static bool follow(char path[LONGEST_PATH]) {
  char          target[LONGEST_PATH];
  const ssize_t length = readlink(path, target, sizeof target - 1);
  char         *slash = strrchr(path, '/');
  if (length <= 0) return false;
  target[length] = '\0';
  const size_t kept = target[0] == '/' || slash == NULL ? 0 : (size_t)(slash + 1 - path);
  if (kept + (size_t)length >= LONGEST_PATH) return false;
  memcpy(path + kept, target, (size_t)length + 1);
  return true;
}

/* "/proc/PID/fd/1" of whoever has the same output, "/dev/tty" and the like; nobody listens at /dev/null. */
static bool leads_to_output(const char *path) {
  struct stat found, output, nobody;
  if (stat(path, &found) != 0 || fstat(output_copy < 0 ? STDOUT_FILENO : output_copy, &output) != 0) return false;
  const bool is_nobody = stat("/dev/null", &nobody) == 0 && S_ISCHR(found.st_mode) && found.st_rdev == nobody.st_rdev;
  return found.st_dev == output.st_dev && found.st_ino == output.st_ino && !is_nobody;
}

/* By name, step by step: where the last link leads is not the same any more when the output was taken. */
bool tm_standard_streams_is_output(const char *path) {
  char at[LONGEST_PATH];
  if (strcmp(path, "-") == 0 || leads_to_output(path)) return true;
  if (strlen(path) >= sizeof at) return false;
  memcpy(at, path, strlen(path) + 1);
  for (int i = 0; i < MOST_LINKS; i++) {
    if (is_name_of_output(at)) return true;
    if (!follow(at)) return false;
  }
  return false;
}
