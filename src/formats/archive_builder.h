/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_builder.h - how a reader fills an archive: begin a file, add what its header says, finish the file.  The rules
 * that hold for every format (no name twice, no bytes claimed twice, nothing beyond the file) are checked here once.
 * Only src/formats includes this.
 */
#ifndef TM_FORMATS_ARCHIVE_BUILDER_H
#define TM_FORMATS_ARCHIVE_BUILDER_H

#include "base/arena.h"
#include "base/file.h"
#include "base/name_table.h"
#include "formats/archive.h"

struct tm_archive {
  tm_memory         *memory;
  tm_archive_options options;           /* defaults filled in */
  tm_arena           arena;             /* names, dims, metadata, notes */
  char               format_name[32];
  tm_file          **files;
  uint64_t           file_count, file_capacity;
  tm_archive_tensor *tensors;
  uint64_t           tensor_count, tensor_capacity;
  tm_name_table      tensor_names;
  tm_metadata       *metadata;
  uint64_t           metadata_count, metadata_capacity;
  tm_name_table      metadata_names;
  const char       **notes;
  uint64_t           note_count, note_capacity;
  uint64_t           tensor_bytes;
  uint64_t           incomplete_count;
  bool               is_nameless, has_data_files;       /* as in tm_reader */
  bool               is_first_file_speaking;    /* the metadata of further files are not kept */
  /* of the file being read */
  tm_name_table      file_keys;
  uint64_t           first_tensor;
  uint64_t           first_metadata;
};

/* An empty archive to fill; tm_archive_close frees it.   TM_ERROR_NO_MEMORY */
tm_status tm_archive_create(tm_memory *memory, const tm_archive_options *options, tm_archive **out_archive, tm_error *error);

/* Closes all files and empties the archive.  Texts in its arena stay. */
void tm_archive_forget_files(tm_archive *archive);

/* Takes `file` over, also when it fails. */
tm_status tm_archive_begin_file(tm_archive *archive, tm_file *file, tm_error *error);
const tm_file *tm_archive_current_file(const tm_archive *archive);

/* Copies name and dims; type_name must be static or in the archive's arena.  file_index and INCOMPLETE are set here.
   TM_ERROR_CORRUPT (name twice), TM_ERROR_LIMIT, TM_ERROR_NO_MEMORY */
tm_status tm_archive_add_tensor(tm_archive *archive, const tm_archive_tensor *tensor, tm_error *error);

/* Copies the key; the value's data must be in the archive's arena.   A key that comes again with the same
   value is noted and dropped.   TM_ERROR_CORRUPT (with another value), TM_ERROR_NO_MEMORY */
tm_status tm_archive_add_metadata(tm_archive *archive, tm_string key, const tm_metadata_value *value, tm_error *error);

tm_status tm_archive_add_note(tm_archive *archive, const char *text, tm_error *error);

/* What of the file may belong to no tensor, or to more than one. */
typedef enum tm_gaps { TM_GAPS_REFUSED, TM_GAPS_ALLOWED, TM_OVERLAPS_ALLOWED } tm_gaps;

/* The file's tensors lie at or after data_begin, overlap only if that is allowed and, if gaps are refused, fill the file to its end.
   TM_ERROR_CORRUPT (that is not so; or the file ends too early and that is not allowed), TM_ERROR_NO_MEMORY */
tm_status tm_archive_finish_file(tm_archive *archive, uint64_t data_begin, tm_gaps gaps, tm_error *error);

/* The product of the dims.  Zeros count as one while it is decided whether the product fits in 64 bits, so that the answer
   does not depend on their place; false when it does not fit. */
bool tm_count_elements(const uint64_t *dims, uint32_t rank, uint64_t *out_count);

/* A name fit for a message, cut if long. */
typedef struct tm_shown_name {
  char text[96];
} tm_shown_name;
tm_shown_name tm_show_name(tm_string name);

#endif
