/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int sim_lock_folder(const char *wanted, char path[SIM_PATH_BYTES]) {
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  int length = 0;
  if (wanted[0] != '\0') length = snprintf(path, SIM_PATH_BYTES, "%s", wanted);
  else if (runtime != NULL && runtime[0] == '/') length = snprintf(path, SIM_PATH_BYTES, "%s", runtime);
  else length = snprintf(path, SIM_PATH_BYTES, "/tmp/tensormorph-%lu", (unsigned long)getuid());
  return length > 0 && length < (int)SIM_PATH_BYTES - 64;
}

/* In a folder that everybody may write to, somebody else may have been there first: then it is not used. */
static int open_folder(const char *folder) {
  struct stat about;
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) return -1;
  const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return -1;
  if (fstat(descriptor, &about) == 0 && about.st_uid == getuid()) return descriptor;
  (void)close(descriptor);
  errno = EACCES;
  return -1;
}

tm_status sim_lock_take(const char *folder, uint64_t hash, int *out_lock, int *out_error) {
  char name[64];
  const int directory = open_folder(folder);
  snprintf(name, sizeof name, "simulator-%016llx.lock", (unsigned long long)hash);
  const int lock = directory < 0 ? -1 : openat(directory, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  *out_error = errno;
  if (directory >= 0) (void)close(directory);
  if (lock < 0) return TM_ERROR_DEVICE_LOST;
  if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
    *out_lock = lock;
    return TM_OK;
  }
  *out_error = errno;
  (void)close(lock);
  return *out_error == EWOULDBLOCK ? TM_BUSY : TM_ERROR_DEVICE_LOST;
}

void sim_lock_drop(int lock) {
  if (lock != SIM_NO_LOCK) (void)close(lock);
}
