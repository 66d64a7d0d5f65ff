/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/reader.h"

#include <stddef.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "formats/stranger.h"

static const tm_reader *const readers[] = {
  &tm_gguf_reader,
  &tm_safetensors_reader,
  &tm_safetensors_index_reader,
  &tm_npy_reader,
  &tm_onnx_reader,
};

#define READER_COUNT (sizeof readers / sizeof readers[0])

const tm_reader *tm_reader_at(uint32_t index) { return index < READER_COUNT ? readers[index] : NULL; }

bool tm_archive_is_model_name(const char *name) {
  for (size_t i = 0; i < READER_COUNT; i++)
    if (readers[i]->extension != NULL && tm_text_has_ending(name, readers[i]->extension)) return true;
  return false;
}

static const tm_reader *find_by_content(const tm_head *head) {
  for (size_t i = 0; i < READER_COUNT; i++)
    if (readers[i]->probe(head)) return readers[i];
  return NULL;
}

static const tm_reader *find_by_name(const tm_head *head) {
  for (size_t i = 0; i < READER_COUNT; i++)
    if (readers[i]->extension != NULL && tm_text_has_ending(head->path, readers[i]->extension)) return readers[i];
  return NULL;
}

static tm_status read_head(const tm_file *file, tm_head *out_head, tm_error *error) {
  *out_head = (tm_head){ .path = tm_file_path(file), .file_bytes = tm_file_size(file) };
  out_head->count = (uint32_t)tm_min_u64(out_head->file_bytes, TM_HEAD_BYTES);
  return tm_file_read(file, 0, out_head->bytes, out_head->count, error);
}

tm_status tm_reader_refuse_stranger(const tm_file *file, tm_error *error) {
  tm_head head;
  TM_TRY(read_head(file, &head, error));
  if (!tm_stranger_is_known(&head) || tm_stranger_is_json_object(&head)) return TM_OK;
  return tm_stranger_refuse(&head, tm_file_label(file), error);
}

/* Content first.  The name decides only about what is nothing known, so that the reader can say what is wrong with it. */
tm_status tm_reader_find(const tm_file *file, const tm_reader **out_reader, tm_error *error) {
  tm_head head;
  TM_TRY(read_head(file, &head, error));
  const tm_reader *reader = find_by_content(&head);
  if (reader == NULL && !tm_stranger_is_known(&head)) reader = find_by_name(&head);
  if (reader == NULL) return tm_stranger_refuse(&head, tm_file_label(file), error);
  *out_reader = reader;
  return TM_OK;
}
