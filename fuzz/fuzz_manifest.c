/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "plugin/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was accepted is sound: texts end, counts fit, and what is mandatory is there. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static tm_manifest manifest;
  tm_error error = TM_ERROR_INIT;
  const tm_status status = tm_manifest_parse((const char *)data, size, "fuzzed.json", &manifest, &error);
  if (status != TM_OK) {
    if (status != TM_ERROR_CORRUPT || error.text[0] == '\0') __builtin_trap();
    return 0;
  }
  if (!manifest.exists || manifest.name[0] == '\0' || size > TM_MANIFEST_BYTES) __builtin_trap();
  if (manifest.feature_count > TM_MANIFEST_FEATURES || manifest.watch_count > TM_MANIFEST_WATCHES) __builtin_trap();
  if (strnlen(manifest.name, sizeof manifest.name) == sizeof manifest.name) __builtin_trap();
  for (uint32_t i = 0; i < manifest.watch_count; i++)
    if (strnlen(manifest.watches[i], sizeof manifest.watches[i]) == sizeof manifest.watches[i]) __builtin_trap();
  (void)tm_manifest_compare(&manifest, "name", "1", &error);
  return 0;
}
