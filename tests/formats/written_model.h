/* SPDX-License-Identifier: Apache-2.0 */
/* written_model.h - small checkpoints that tests write: every byte of one says which one it is. */
#ifndef TM_TESTS_FORMATS_WRITTEN_MODEL_H
#define TM_TESTS_FORMATS_WRITTEN_MODEL_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/checkpoint_writer.h"

#define MODEL_TENSORS 6u
#define MODEL_TENSOR_BYTES UINT64_C(4096)
/* Two tensors a shard; three. */
#define SHARDS_OF_TWO   UINT64_C(9000)
#define SHARDS_OF_THREE UINT64_C(13200)

static const char *const model_names[MODEL_TENSORS] = { "a", "b", "c", "d", "e", "f" };

static inline tm_status model_plan(tm_memory *memory, uint32_t format, const char *path, uint64_t shard_bytes,
                                   tm_checkpoint_writer **out_writer, tm_error *error) {
  static const uint64_t dims[2] = { 32, 32 };
  tm_write_tensor tensors[MODEL_TENSORS];
  for (uint32_t i = 0; i < MODEL_TENSORS; i++)
    tensors[i] = (tm_write_tensor){ .name = { model_names[i], 1 }, .dims = dims, .rank = 2, .format = TM_FORMAT_F32 };
  const tm_write_request request = { .format = format, .path = path, .shard_bytes = shard_bytes, .tensors = tensors,
                                     .tensor_count = MODEL_TENSORS };
  return tm_checkpoint_writer_create(memory, &request, out_writer, error);
}

static inline tm_status model_fill(tm_checkpoint_writer *writer, unsigned char content, tm_error *error) {
  unsigned char bytes[MODEL_TENSOR_BYTES];
  memset(bytes, content, sizeof bytes);
  for (uint32_t i = 0; i < MODEL_TENSORS; i++) TM_TRY(tm_checkpoint_writer_write(writer, i, 0, bytes, sizeof bytes, error));
  return TM_OK;
}

static inline tm_status model_write(tm_memory *memory, uint32_t format, const char *path, uint64_t shard_bytes,
                                    unsigned char content,
                                    tm_error *error) {
  tm_checkpoint_writer *writer = NULL;
  TM_TRY(model_plan(memory, format, path, shard_bytes, &writer, error));
  tm_status status = tm_checkpoint_writer_begin(writer, error);
  if (status == TM_OK) status = model_fill(writer, content, error);
  if (status == TM_OK) status = tm_checkpoint_writer_finish(writer, error);
  tm_checkpoint_writer_destroy(writer);
  return status;
}

#define MODEL_MIXED 256         /* what may never be */
/* Which model stands there: its content; 0: none that can be opened; MODEL_MIXED. */
static inline int model_content(tm_memory *memory, const char *path, tm_error *error) {
  tm_archive *archive = NULL;
  unsigned char bytes[MODEL_TENSOR_BYTES];
  int content = -1;
  if (tm_archive_open(memory, NULL, path, &archive, error) != TM_OK) return 0;
  if (tm_archive_tensor_count(archive) != MODEL_TENSORS) content = MODEL_MIXED;
  for (uint32_t i = 0; i < MODEL_TENSORS && content != MODEL_MIXED; i++) {
    uint64_t index;
    if (!tm_archive_find(archive, model_names[i], 1, &index) ||
        tm_archive_read(archive, index, 0, bytes, sizeof bytes, error) != TM_OK || (content >= 0 && bytes[0] != content))
      content = MODEL_MIXED;
    else content = bytes[0];
    for (uint64_t k = 0; k < sizeof bytes && content != MODEL_MIXED; k++)
      if (bytes[k] != content) content = MODEL_MIXED;
  }
  tm_archive_close(archive);
  return content;
}

/* Entries of the folder whose names hold `text`. */
static inline uint32_t count_entries(const char *folder, const char *text) {
  uint32_t count = 0;
  DIR *opened = opendir(folder);
  if (opened == NULL) return 0;
  for (const struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened))
    count += entry->d_name[0] != '.' && strstr(entry->d_name, text) != NULL;
  (void)closedir(opened);
  return count;
}

#endif
