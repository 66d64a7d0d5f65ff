/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_dump.c - all that a checkpoint holds, for oracle scripts in other languages.  Each argument is a path, or
 * "map" or "read" for the paths after it; of each:
 *
 *   file <format>\n, or  error <text>\n  and nothing else
 *   metadata <key in hex> <type> <value in hex>\n   each
 *   note <text>\n                                   each
 *   tensor <name in hex> <format or -> <type in hex> <bytes or -1 if they cannot be read> <rank> <dims ...>\n   each, then its bytes
 *   end\n
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/archive.h"
#include "tensor/format.h"

static void print_hex(const char *data, uint64_t length) {
  for (uint64_t i = 0; i < length; i++) printf("%02x", (unsigned char)data[i]);
  if (length == 0) printf("-");
}

/* In pieces that no element fills evenly. */
static bool read_bytes(const tm_archive *archive, uint64_t index, uint64_t bytes, char *data) {
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t piece = bytes - at < 1000003 ? bytes - at : 1000003;
    if (tm_archive_read(archive, index, at, data + at, piece, NULL) != TM_OK) return false;
    at += piece;
  }
  return true;
}

static void dump_tensor(const tm_archive *archive, uint64_t index) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, index);
  const tm_format_info *info = tm_format_find(tensor->format);
  char *data = malloc((size_t)tensor->bytes + 1);
  const bool is_readable = data != NULL && read_bytes(archive, index, tensor->bytes, data);
  const char *mapped = tm_archive_mapped(archive, index);
  if (is_readable && mapped != NULL && memcmp(mapped, data, (size_t)tensor->bytes) != 0) printf("mapped and read differ\n");
  printf("tensor ");
  print_hex(tensor->name.data, tensor->name.length);
  printf(" %s ", info == NULL ? "-" : info->name);
  print_hex(tensor->type_name, strlen(tensor->type_name));
  printf(" %" PRId64 " %" PRIu32, is_readable ? (int64_t)tensor->bytes : -1, tensor->rank);
  for (uint32_t i = 0; i < tensor->rank; i++) printf(" %" PRIu64, tensor->dims[i]);
  printf("\n");
  if (is_readable) fwrite(data, 1, (size_t)tensor->bytes, stdout);
  free(data);
}

static void dump_metadata(const tm_metadata *entry) {
  static char text[1 << 16];
  printf("metadata ");
  print_hex(entry->key.data, entry->key.length);
  tm_metadata_describe_type(&entry->value, text, sizeof text);
  for (char *c = text; *c != '\0'; c++)
    if (*c == ' ') *c = '_';
  printf(" %s ", text);
  const uint64_t length = tm_metadata_print(&entry->value, text, sizeof text);
  print_hex(text, length);
  printf("\n");
}

static void dump(tm_memory *memory, const char *path, bool is_mapped) {
  const tm_archive_options options = { .map_files = is_mapped };
  tm_error error = TM_ERROR_INIT;
  tm_archive *archive = NULL;
  if (tm_archive_open(memory, &options, path, &archive, &error) != TM_OK) {
    printf("error %s\n", error.text);
    return;
  }
  printf("file %s\n", tm_archive_format_name(archive));
  for (uint64_t i = 0; i < tm_archive_metadata_count(archive); i++) dump_metadata(tm_archive_metadata_at(archive, i));
  for (uint64_t i = 0; tm_archive_note_at(archive, i) != NULL; i++) printf("note %s\n", tm_archive_note_at(archive, i));
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) dump_tensor(archive, i);
  printf("end\n");
  tm_archive_close(archive);
}

int main(int argc, char **argv) {
  bool is_mapped = false;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "map") == 0 || strcmp(argv[i], "read") == 0) is_mapped = strcmp(argv[i], "map") == 0;
    else dump(&memory, argv[i], is_mapped);
  }
  return 0;
}
