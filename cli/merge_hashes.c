/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_hashes.h"

#include <string.h>
#include <sys/stat.h>

#include "complain.h"
#include "merge_recipe.h"

typedef struct hashed {
  const char *path;
  const char *hash;     /* NULL, or zeros: nobody knows, or nothing was read */
} hashed;

/* The base is behind the models. */
static hashed entry_at(const tm_merge_request *request, uint32_t index) {
  if (index == request->model_count) return (hashed){ request->base, request->base_hash };
  return (hashed){ request->models[index].path, request->models[index].hash };
}

static bool is_known(const char *hash) { return hash != NULL && strspn(hash, "0") != strlen(hash); }

static bool differ(const char *one, const char *other) { return is_known(one) && is_known(other) && strcmp(one, other) != 0; }

static bool is_one_file(const char *one, const char *other) {
  struct stat a, b;
  if (one == NULL || other == NULL) return false;
  return strcmp(one, other) == 0 || (stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

void tm_merge_hashes_forget(tm_merge_request *request) {
  for (uint32_t i = 0; i < request->model_count; i++) request->models[i].hash = NULL;
  request->base_hash = NULL;
}

tm_status tm_merge_hashes_check(const tm_merge_request *request, tm_error *error) {
  for (uint32_t i = 1; i <= request->model_count; i++)
    for (uint32_t k = 0; k < i; k++) {
      const hashed one = entry_at(request, k), other = entry_at(request, i);
      if (differ(one.hash, other.hash) && is_one_file(one.path, other.path))
        return tm_refuse(error, TM_ERROR_ARGUMENT,
                         "%.300s: the recipe has two different hashes of this one file, so it means two; name all models behind "
                         "the options", other.path);
    }
  return TM_OK;
}

uint32_t tm_merge_hashes_compare(const tm_merge_request *request, const char *record, const char *out_paths[TM_MERGE_MOST_HASHES]) {
  uint32_t         count = 0;
  tm_error         error = TM_CLI_ERROR_INIT;
  tm_merge_request made;
  tm_merge_request_init(&made);
  const tm_status status = tm_merge_recipe_parse("", record, strlen(record), &made, &error);
  for (uint32_t i = 0; status == TM_OK && made.model_count == request->model_count && i <= request->model_count; i++) {
    const hashed told = entry_at(request, i);
    if (differ(told.hash, entry_at(&made, i).hash)) out_paths[count++] = told.path;
  }
  tm_merge_request_deinit(&made);
  return count;
}
