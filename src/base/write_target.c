/* SPDX-License-Identifier: Apache-2.0 */
#include "base/write_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_LINKS 40u          /* from a path to its file, as the system follows them */

/* Bytes of the path up to its last part; 0: it is in the working directory. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* In a folder that all may write to, but where names belong to those who made them, somebody else's link could lead anywhere. */
static bool is_trusted(const char *path) {
  char folder[TM_LONGEST_PATH] = ".";
  struct stat link, holder;
  const size_t length = folder_length(path);
  if (length != 0) {
    memcpy(folder, path, length);
    folder[length] = '\0';
  }
  if (lstat(path, &link) != 0 || stat(folder, &holder) != 0) return false;
  const bool is_shared = (holder.st_mode & S_ISVTX) != 0 && (holder.st_mode & S_IWOTH) != 0;
  return !is_shared || link.st_uid == geteuid() || link.st_uid == holder.st_uid;
}

/* One link further; returns errno, ENOENT and EINVAL where `path` is none. */
static int follow_link(char path[TM_LONGEST_PATH]) {
  char target[TM_LONGEST_PATH];
  const ssize_t length = readlink(path, target, sizeof target);
  if (length < 0) return errno;
  if (!is_trusted(path)) return EACCES;
  const size_t kept = length > 0 && target[0] == '/' ? 0 : folder_length(path);
  if ((size_t)length >= sizeof target - kept) return ENAMETOOLONG;
  memcpy(path + kept, target, (size_t)length);
  path[kept + (size_t)length] = '\0';
  return 0;
}

int tm_write_target_find(const char *path, char out_target[TM_LONGEST_PATH]) {
  if (strlen(path) >= TM_LONGEST_PATH) return ENAMETOOLONG;
  memcpy(out_target, path, strlen(path) + 1);
  for (uint32_t i = 0; i < MOST_LINKS; i++) {
    const int number = follow_link(out_target);
    if (number != 0) return number == ENOENT || number == EINVAL ? 0 : number;
  }
  return ELOOP;
}

int tm_write_target_look(int folder, const char *name, struct stat *out_found, bool *out_is_there) {
  *out_is_there = fstatat(folder, name, out_found, AT_SYMLINK_NOFOLLOW) == 0;
  if (!*out_is_there) return errno == ENOENT ? 0 : errno;
  if (!S_ISREG(out_found->st_mode)) return S_ISDIR(out_found->st_mode) ? EISDIR : EINVAL;
  return faccessat(folder, name, W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* Where the group cannot be kept, what it may do is not given to another one. */
int tm_write_target_keep_access(int file, const struct stat *old) {
  const bool is_group_kept = fchown(file, old->st_uid, old->st_gid) == 0 || fchown(file, (uid_t)-1, old->st_gid) == 0;
  return fchmod(file, old->st_mode & (is_group_kept ? 0777 : 0707)) == 0 ? 0 : errno;
}
