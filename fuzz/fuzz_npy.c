/* SPDX-License-Identifier: Apache-2.0 */
#include "archive_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  walk_archive("fuzz.npy", data, size, false);
  walk_archive("fuzz.npy", data, size, true);
  return 0;
}
