/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - a file format: how to recognise it and how to read its header.  Adding a format is one file that defines a
 * tm_reader, and one row in reader_table.c.
 */
#ifndef TM_FORMATS_READER_H
#define TM_FORMATS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "formats/archive_builder.h"

#define TM_HEAD_BYTES 512u

/* The beginning of a file, by which it is recognised. */
typedef struct tm_head {
  const char   *path;
  uint64_t      file_bytes;
  uint32_t      count;          /* bytes below; fewer than TM_HEAD_BYTES only if the file is shorter */
  unsigned char bytes[TM_HEAD_BYTES];
} tm_head;

typedef struct tm_reader {
  const char *name;
  const char *extension;        /* ".gguf": what a file of that name is taken for if nothing else is recognised; or NULL */
  bool        is_nameless;      /* tensors have no names in it: what they are called comes from the file's name */
  bool        has_data_files;   /* further files of it have no header: what lies where in them, the first says */
  bool      (*probe)(const tm_head *head);
  /* Fills the archive from `file`, which the archive owns afterwards, also when it fails. */
  tm_status (*read)(tm_archive *archive, tm_file *file, tm_error *error);
} tm_reader;

extern const tm_reader tm_gguf_reader;
extern const tm_reader tm_safetensors_reader;
extern const tm_reader tm_safetensors_index_reader;
extern const tm_reader tm_npy_reader;
extern const tm_reader tm_onnx_reader;

/* Rows in the order in which they are asked; NULL past the end. */
const tm_reader *tm_reader_at(uint32_t index);

/* The reader for an opened file.  TM_ERROR_CORRUPT: none, with a text that says what the file is instead. */
tm_status tm_reader_find(const tm_file *file, const tm_reader **out_reader, tm_error *error);
/* Of a file that should be an index by its name.  TM_ERROR_CORRUPT: it surely is something else, and the text says what. */
tm_status tm_reader_refuse_stranger(const tm_file *file, tm_error *error);

#endif
