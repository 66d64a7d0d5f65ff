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

static tm_status fail_path(const char *path, int number, tm_error *error) {
  char label[512];
  tm_text_escape(path, strlen(path), label, sizeof label);
  return tm_fail_native(error, TM_ERROR_IO, number, "%s: cannot be written: %s", label, tm_system_error(number).text);
}

/* With the mode that the user's mask gives to new files, which mkstemp does not. */
static int create_beside(const char *path, char *out_temporary) {
  for (uint32_t i = 0; i < MOST_WRITERS; i++) {
    const int length = snprintf(out_temporary, LONGEST_PATH, "%s.%llx-%u.new", path, (unsigned long long)tm_process_number(), i);
    if (length < 0 || length >= LONGEST_PATH) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int file = open(out_temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

tm_status tm_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error) {
  if (path == NULL || path[0] == '\0') return tm_fail(error, TM_ERROR_ARGUMENT, "no path to write to");
  struct stat found;
  if (stat(path, &found) == 0 && !S_ISREG(found.st_mode)) return fail_path(path, S_ISDIR(found.st_mode) ? EISDIR : EINVAL, error);
  char temporary[LONGEST_PATH];
  const int file = create_beside(path, temporary);
  if (file < 0) return fail_path(path, errno, error);
  int number = tm_descriptor_write(file, 0, data, bytes) && fsync(file) == 0 ? 0 : errno;
  if (close(file) != 0 && number == 0) number = errno;
  if (number == 0 && rename(temporary, path) != 0) number = errno;
  if (number == 0) return TM_OK;
  (void)unlink(temporary);
  return fail_path(path, number, error);
}
