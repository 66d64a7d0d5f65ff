/* SPDX-License-Identifier: Apache-2.0 */
#include "companion.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interrupt.h"

extern char **environ;

static bool own_folder(char *folder, size_t capacity) {
  const ssize_t length = readlink("/proc/self/exe", folder, capacity - 1);
  if (length <= 0 || (size_t)length >= capacity - 1) return false;
  folder[length] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash == NULL) return false;
  *slash = '\0';
  return true;
}

bool tm_companion_find(const char *const *places, const char *name, char *out_path, size_t capacity) {
  char folder[4096];
  if (!own_folder(folder, sizeof folder)) return false;
  for (; *places != NULL; places++) {
    const int length = snprintf(out_path, capacity, "%s/%s/%s", folder, *places, name);
    if (length > 0 && (size_t)length < capacity && access(out_path, F_OK) == 0) return true;
  }
  return false;
}

/* Signals end it as they end any program, whatever this one makes of them. */
static bool start(const char *path, const char *const *argv, pid_t *out_child) {
  posix_spawnattr_t attributes;
  sigset_t usual, blocked;
  errno = posix_spawnattr_init(&attributes);
  if (errno != 0) return false;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGXFSZ);
  (void)posix_spawnattr_setsigdefault(&attributes, &usual);
  (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  tm_interrupt_unblock(&blocked);
  (void)posix_spawnattr_setsigmask(&attributes, &blocked);
  (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  errno = posix_spawn(out_child, path, NULL, &attributes, (char *const *)(void *)(size_t)argv, environ);
  const int failure = errno;
  posix_spawnattr_destroy(&attributes);
  errno = failure;
  return failure == 0;
}

bool tm_companion_run(const char *path, const char *const *argv, int *out_status) {
  pid_t child;
  if (!start(path, argv, &child)) return false;
  pid_t ended;
  do ended = waitpid(child, out_status, 0);
  while (ended < 0 && errno == EINTR);
  return ended == child;
}
