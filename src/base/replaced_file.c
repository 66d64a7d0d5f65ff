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
#include "base/write_target.h"

#define MOST_WRITERS 64u        /* of one path at once in this process */

static tm_status fail_path(const char *path, const char *target, int number, tm_error *error) {
  char label[256], target_label[256];
  tm_text_escape(path, strlen(path), label, sizeof label);
  if (strcmp(path, target) == 0)
    return tm_fail_native(error, TM_ERROR_IO, number, "%s: cannot be written: %s", label, tm_system_error(number).text);
  tm_text_escape(target, strlen(target), target_label, sizeof target_label);
  return tm_fail_native(error, TM_ERROR_IO, number, "%s: %s, where it links to, cannot be written: %s", label, target_label,
                        tm_system_error(number).text);
}

static int create_beside(const char *path, mode_t mode, char *out_temporary) {
  for (uint32_t i = 0; i < MOST_WRITERS; i++) {
    const int length = snprintf(out_temporary, TM_LONGEST_PATH, "%s.%llx-%u.new", path, (unsigned long long)tm_process_number(), i);
    if (length < 0 || length >= TM_LONGEST_PATH) {
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
  int number = tm_write_target_look(AT_FDCWD, target, &old, &is_there);
  if (number != 0) return number;
  char temporary[TM_LONGEST_PATH];
  const int file = create_beside(target, is_there ? 0600 : 0666, temporary);
  if (file < 0) return errno;
  if (is_there) number = tm_write_target_keep_access(file, &old);
  if (number == 0 && !(tm_descriptor_write(file, 0, data, bytes) && fsync(file) == 0)) number = errno;
  if (close(file) != 0 && number == 0) number = errno;
  if (number == 0 && rename(temporary, target) != 0) number = errno;
  if (number != 0) (void)unlink(temporary);
  return number;
}

tm_status tm_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error) {
  if (path == NULL || path[0] == '\0') return tm_fail(error, TM_ERROR_ARGUMENT, "no path to write to");
  char target[TM_LONGEST_PATH];
  int number = tm_write_target_find(path, target);
  if (number != 0) return fail_path(path, path, number, error);
  number = replace(target, data, bytes);
  return number == 0 ? TM_OK : fail_path(path, target, number, error);
}
