/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/shard_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Writers pad to five digits, and what has more is no number of files. */
#define DIGITS 5u

/* The number that ends before *end, which moves to its beginning. */
static bool take_number(const char *begin, const char **end, uint64_t *out_number) {
  uint64_t number = 0, scale = 1;
  uint32_t digits = 0;
  const char *at = *end;
  for (; at > begin && at[-1] >= '0' && at[-1] <= '9' && digits <= DIGITS; at--, digits++, scale *= 10)
    number += scale * (uint64_t)(at[-1] - '0');
  if (digits != DIGITS) return false;
  *end = at;
  *out_number = number;
  return true;
}

static bool take_word(const char *begin, const char **end, const char *word) {
  const size_t length = strlen(word);
  if ((size_t)(*end - begin) < length || memcmp(*end - length, word, length) != 0) return false;
  *end -= length;
  return true;
}

bool tm_shard_name_take_apart(const char *path, tm_shard_name *out_name) {
  const char *slash = strrchr(path, '/');
  const char *begin = slash == NULL ? path : slash + 1;
  const char *extension = strrchr(begin, '.');
  uint64_t number, count;
  if (extension == NULL) return false;
  const char *end = extension;
  if (!take_number(begin, &end, &count) || !take_word(begin, &end, "-of-") || !take_number(begin, &end, &number) ||
      !take_word(begin, &end, "-"))
    return false;
  *out_name = (tm_shard_name){ .prefix = path, .prefix_length = (uint64_t)(end - path), .number = number, .count = count,
                               .extension = extension };
  return true;
}

bool tm_shard_name_parse(const char *path, tm_shard_name *out_name) {
  tm_shard_name name;
  if (!tm_shard_name_take_apart(path, &name) || name.number == 0 || name.number > name.count) return false;
  *out_name = name;
  return true;
}

/* Some count from 0, and who has an index may call its files anything; but nobody has more parts than all. */
tm_status tm_shard_name_check(const char *path, const char *label, tm_error *error) {
  tm_shard_name name;
  if (!tm_shard_name_take_apart(path, &name) || name.number <= name.count) return TM_OK;
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: by its name part %" PRIu64 " of %" PRIu64 ", which no set has; was it renamed, or is it "
                 "of another set? A name without these numbers stands for a model by itself", label, name.number, name.count);
}

bool tm_shard_name_is_of(const tm_shard_name *a, const tm_shard_name *b) {
  return a->count == b->count && a->prefix_length == b->prefix_length &&
         memcmp(a->prefix, b->prefix, (size_t)a->prefix_length) == 0 && strcmp(a->extension, b->extension) == 0;
}

char *tm_shard_name_path(tm_arena *arena, const tm_shard_name *name, uint64_t number) {
  const uint64_t capacity = name->prefix_length + strlen(name->extension) + 2 * (uint64_t)DIGITS + sizeof "--of-";
  char *path = tm_arena_alloc(arena, capacity);
  if (path == NULL) return NULL;
  memcpy(path, name->prefix, (size_t)name->prefix_length);
  (void)snprintf(path + name->prefix_length, (size_t)(capacity - name->prefix_length), "-%05" PRIu64 "-of-%05" PRIu64 "%s", number,
                 name->count, name->extension);
  return path;
}
