/* SPDX-License-Identifier: Apache-2.0 */
#include "base/replaced_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/claimed_file.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/system_error.h"
#include "base/text.h"

#define LONGEST_PATH 4096
#define MOST_WRITERS 64u        /* of one path at once in this process */
#define MOST_LINKS   40u        /* from a path to its file, as the system follows them */

static tm_status fail_path(const char *path, const char *target, int number, tm_error *error) {
  char label[256], target_label[256];
  tm_text_escape(path, strlen(path), label, sizeof label);
  if (strcmp(path, target) == 0)
    return tm_fail_native(error, TM_ERROR_IO, number, "%s: cannot be written: %s", label, tm_system_error(number).text);
  tm_text_escape(target, strlen(target), target_label, sizeof target_label);
  return tm_fail_native(error, TM_ERROR_IO, number, "%s: %s, where it links to, cannot be written: %s", label, target_label,
                        tm_system_error(number).text);
}

/* Bytes of the path up to its last part; 0: it is in the working directory. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* In a folder that all may write to, but where names belong to those who made them, somebody else's link could lead anywhere. */
static bool is_trusted(const char *path) {
  char folder[LONGEST_PATH] = ".";
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
static int follow_link(char path[LONGEST_PATH]) {
  char target[LONGEST_PATH];
  const ssize_t length = readlink(path, target, sizeof target);
  if (length < 0) return errno;
  if (!is_trusted(path)) return EACCES;
  const size_t kept = length > 0 && target[0] == '/' ? 0 : folder_length(path);
  if ((size_t)length >= sizeof target - kept) return ENAMETOOLONG;
  memcpy(path + kept, target, (size_t)length);
  path[kept + (size_t)length] = '\0';
  return 0;
}

/* The last part of the path followed to what is no link, be it there or not; returns errno.  Folders are the system's to follow. */
static int find_target(const char *path, char out_target[LONGEST_PATH]) {
  if (strlen(path) >= LONGEST_PATH) return ENAMETOOLONG;
  memcpy(out_target, path, strlen(path) + 1);
  for (uint32_t i = 0; i < MOST_LINKS; i++) {
    const int number = follow_link(out_target);
    if (number != 0) return number == ENOENT || number == EINVAL ? 0 : number;
  }
  return ELOOP;
}

/* What is there, if anything is: a file that may be written to; returns errno. */
static int look_at(const char *target, struct stat *out_found, bool *out_is_there) {
  *out_is_there = lstat(target, out_found) == 0;
  if (!*out_is_there) return errno == ENOENT ? 0 : errno;
  if (!S_ISREG(out_found->st_mode)) return S_ISDIR(out_found->st_mode) ? EISDIR : EINVAL;
  return faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* As the file was that goes.  Where the group cannot be kept, what it may do is not given to another one. */
static int keep_access(int file, const struct stat *old) {
  const bool is_group_kept = fchown(file, old->st_uid, old->st_gid) == 0 || fchown(file, (uid_t)-1, old->st_gid) == 0;
  return fchmod(file, old->st_mode & (is_group_kept ? 0777 : 0707)) == 0 ? 0 : errno;
}

static int create_beside(const char *path, mode_t mode, char *out_temporary) {
  for (uint32_t i = 0; i < MOST_WRITERS; i++) {
    const int length = snprintf(out_temporary, LONGEST_PATH, "%s.%llx-%u.new", path, (unsigned long long)tm_process_number(), i);
    if (length < 0 || length >= LONGEST_PATH) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int file = open(out_temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

/* A new file has the mode that the user's mask gives, which mkstemp does not; one that replaces another is nobody else's until it
   has the mode of that. */
static int replace(const char *target, const void *data, uint64_t bytes) {
  struct stat old;
  bool is_there;
  int number = look_at(target, &old, &is_there);
  if (number != 0) return number;
  char temporary[LONGEST_PATH];
  const int file = create_beside(target, is_there ? 0600 : 0666, temporary);
  if (file < 0) return errno;
  if (is_there) number = keep_access(file, &old);
  if (number == 0 && !(tm_descriptor_write(file, 0, data, bytes) && fsync(file) == 0)) number = errno;
  if (close(file) != 0 && number == 0) number = errno;
  if (number == 0 && rename(temporary, target) != 0) number = errno;
  if (number != 0) (void)unlink(temporary);
  return number;
}

tm_status tm_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error) {
  if (path == NULL || path[0] == '\0') return tm_fail(error, TM_ERROR_ARGUMENT, "no path to write to");
  char target[LONGEST_PATH];
  int number = find_target(path, target);
  if (number != 0) return fail_path(path, path, number, error);
  number = replace(target, data, bytes);
  return number == 0 ? TM_OK : fail_path(path, target, number, error);
}
