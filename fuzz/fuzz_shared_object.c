/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/shared_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct memory_file {
  const uint8_t *bytes;
  size_t         size;
} memory_file;

/* The reader may only ask for what exists. */
static bool read_memory(void *context, uint64_t offset, void *out_data, uint64_t bytes) {
  const memory_file *file = context;
  if (offset > file->size || bytes > file->size - offset) __builtin_trap();
  memcpy(out_data, file->bytes + offset, (size_t)bytes);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  memory_file file = { data, size };
  const tm_byte_source source = { read_memory, &file, size };
  tm_shared_object object;
  tm_error error = TM_ERROR_INIT;
  const tm_status status = tm_shared_object_read(&source, "fuzzed.so", "tm_plugin_query", &object, &error);
  if (status != TM_OK) {
    if (status != TM_ERROR_CORRUPT || error.text[0] == '\0') __builtin_trap();
    return 0;
  }
  if (object.entry_count > object.export_count) __builtin_trap();
  if (memchr(object.needed, '\0', sizeof object.needed) == NULL) __builtin_trap();
  return 0;
}
