/* SPDX-License-Identifier: Apache-2.0 */
#include "same_files.h"

#include <sys/stat.h>

static bool is_same_file(const char *a, const char *b) {
  struct stat left, right;
  return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

bool tm_same_files(const tm_checkpoint *a, const tm_checkpoint *b) {
  tm_file_description left = { .struct_size = sizeof left }, right = { .struct_size = sizeof right };
  for (uint32_t i = 0;; i++) {
    const tm_status in_a = tm_checkpoint_file(a, i, &left), in_b = tm_checkpoint_file(b, i, &right);
    if (in_a != TM_OK || in_b != TM_OK) return i > 0 && in_a == in_b;
    if (!is_same_file(left.path, right.path)) return false;
  }
}
