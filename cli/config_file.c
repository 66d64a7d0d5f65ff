/* SPDX-License-Identifier: Apache-2.0 */
#include "config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"

static const char blanks[] = " \t\r";

static char *trim(char *begin, char *end) {
  begin += strspn(begin, blanks);
  while (end > begin && strchr(blanks, end[-1]) != NULL) end--;
  *end = '\0';
  return begin;
}

static tm_status parse_line(const char *path, unsigned line, char *text, char *end, tm_config_entry_fn entry,
                            void *context, tm_error *error) {
  char *begin = trim(text, end);
  if (*begin == '\0' || *begin == '#') return TM_OK;
  char *equals = strchr(begin, '=');
  if (equals == NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s:%u: expected \"key = value\", found \"%.60s\"", path, line, begin);
  char       *line_end = begin + strlen(begin);
  const char *key = trim(begin, equals);
  const char *value = trim(equals + 1, line_end);
  if (*key == '\0') return tm_refuse(error, TM_ERROR_ARGUMENT, "%s:%u: no key before \"=\"", path, line);
  return entry(context, line, key, value, error);
}

tm_status tm_config_parse(const char *path, char *text, size_t length, tm_config_entry_fn entry, void *context,
                          tm_error *error) {
  const char *end = text + length;
  unsigned    line = 1;
  for (char *begin = text; begin < end; line++) {
    char *newline = memchr(begin, '\n', (size_t)(end - begin));
    char *line_end = newline != NULL ? newline : text + length;
    if (memchr(begin, '\0', (size_t)(line_end - begin)) != NULL)
      return tm_refuse(error, TM_ERROR_ARGUMENT, "%s:%u: a NUL byte; this is no text file", path, line);
    const tm_status status = parse_line(path, line, begin, line_end, entry, context, error);
    if (status != TM_OK) return status;
    begin = line_end + 1;
  }
  return TM_OK;
}

static tm_status read_all(const char *path, FILE *file, char **out_text, size_t *out_length, tm_error *error) {
  char *text = malloc(TM_CONFIG_FILE_MAX_BYTES + 2);
  if (text == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  const size_t length = fread(text, 1, TM_CONFIG_FILE_MAX_BYTES + 1, file);
  if (ferror(file)) {
    free(text);
    return tm_refuse(error, TM_ERROR_IO, "%s: %s", path, strerror(errno));
  }
  if (length > TM_CONFIG_FILE_MAX_BYTES) {
    free(text);
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: larger than %u bytes; this is no configuration", path,
                     TM_CONFIG_FILE_MAX_BYTES);
  }
  text[length] = '\0';
  *out_text = text;
  *out_length = length;
  return TM_OK;
}

/* Opened without waiting: a FIFO would keep the command for ever.  One that this user may not read belongs to somebody else
   (sudo, a container) and is passed over with a word. */
static tm_status open_config(const char *path, FILE **out_file, tm_error *error) {
  struct stat found;
  const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return TM_OK;
    if (errno != EACCES) return tm_refuse(error, TM_ERROR_IO, "%s: %s", path, strerror(errno));
    (void)tm_complain_as(TM_EXIT_OK, "%s: %s; going on without it", path, strerror(errno));
    return TM_OK;
  }
  if (fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
    close(descriptor);
    return tm_refuse(error, TM_ERROR_IO, "%s: not a regular file", path);
  }
  *out_file = fdopen(descriptor, "rb");
  if (*out_file != NULL) return TM_OK;
  close(descriptor);
  return tm_refuse(error, TM_ERROR_IO, "%s: %s", path, strerror(errno));
}

tm_status tm_config_read(const char *path, char **out_text, size_t *out_length, tm_error *error) {
  FILE *file = NULL;
  *out_text = NULL;
  *out_length = 0;
  tm_status status = open_config(path, &file, error);
  if (status != TM_OK || file == NULL) return status;
  status = read_all(path, file, out_text, out_length, error);
  fclose(file);
  return status;
}
