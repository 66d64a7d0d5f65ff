/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_recipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"

static bool ends_with(const char *text, const char *ending) {
  const size_t length = strlen(text), wanted = strlen(ending);
  return length >= wanted && strcmp(text + length - wanted, ending) == 0;
}

static bool is_folder(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

bool tm_merge_recipe_is_checkpoint(const char *path) {
  return ends_with(path, ".safetensors") || ends_with(path, ".gguf") || ends_with(path, ".safetensors.index.json") ||
         is_folder(path);
}

static tm_status parse_record(const char *path, tm_checkpoint *checkpoint, tm_merge_request *request, tm_error *error) {
  tm_metadata_description entry = { .struct_size = sizeof entry };
  for (uint64_t i = 0; tm_checkpoint_metadata(checkpoint, i, &entry) == TM_OK; i++)
    if (entry.key_length == strlen(TM_MERGE_RECORD_KEY) && memcmp(entry.key, TM_MERGE_RECORD_KEY, entry.key_length) == 0)
      return tm_merge_recipe_parse(path, entry.value, (size_t)entry.value_length, request, error);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: no merge made this; its metadata hold no \"" TM_MERGE_RECORD_KEY "\"", path);
}

/* A checkpoint that is named by its folder is one in that folder: there its paths begin. */
static tm_status parse_record_of(const char *path, tm_checkpoint *checkpoint, tm_merge_request *request, tm_error *error) {
  char inside[4096];
  if (!is_folder(path) || ends_with(path, "/")) return parse_record(path, checkpoint, request, error);
  const int length = snprintf(inside, sizeof inside, "%s/", path);
  if (length < 0 || (size_t)length >= sizeof inside) return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: too long a path", path);
  return parse_record(inside, checkpoint, request, error);
}

/* Opened without waiting: a FIFO would keep the command for ever. */
static tm_status open_regular(const char *path, FILE **out_file, tm_error *error) {
  struct stat found;
  const int   descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    return tm_refuse(error, errno == ENOENT ? TM_ERROR_NOT_FOUND : TM_ERROR_IO, "%s: %s", path, strerror(errno));
  *out_file = fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) ? fdopen(descriptor, "rb") : NULL;
  if (*out_file != NULL) return TM_OK;
  close(descriptor);
  return tm_refuse(error, TM_ERROR_IO, "%s: not a regular file", path);
}

static tm_status parse_file(const char *path, FILE *file, char *text, tm_merge_request *request, tm_error *error) {
  const size_t length = fread(text, 1, TM_MERGE_RECIPE_MAX_BYTES + 1, file);
  if (ferror(file)) return tm_refuse(error, TM_ERROR_IO, "%s: %s", path, strerror(errno));
  if (length > TM_MERGE_RECIPE_MAX_BYTES)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: larger than %u bytes; this is no recipe", path, TM_MERGE_RECIPE_MAX_BYTES);
  return tm_merge_recipe_parse(path, text, length, request, error);
}

tm_status tm_merge_recipe_load(tm_context *context, const char *path, tm_merge_request *request, tm_error *error) {
  FILE          *file = NULL;
  tm_checkpoint *checkpoint = NULL;
  tm_status      status = TM_OK;
  if (tm_merge_recipe_is_checkpoint(path)) {
    status = tm_checkpoint_open(context, path, 0, &checkpoint, error);
    if (status == TM_OK) status = parse_record_of(path, checkpoint, request, error);
    tm_checkpoint_close(checkpoint);
    return status;
  }
  status = open_regular(path, &file, error);
  if (status != TM_OK) return status;
  char *text = malloc(TM_MERGE_RECIPE_MAX_BYTES + 1);
  status = text != NULL ? parse_file(path, file, text, request, error) : tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  free(text);
  fclose(file);
  return status;
}
