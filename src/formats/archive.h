/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.h - an opened checkpoint, whatever its format: files, metadata and tensors as they are stored.  It says where
 * tensors lie and reads their bytes; what the bytes mean is not its business.  After opening an archive never changes, so
 * every function but close may be called from any thread at once.
 */
#ifndef TM_FORMATS_ARCHIVE_H
#define TM_FORMATS_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/pool.h"
#include "formats/metadata.h"
#include "tensormorph/types.h"

#define TM_ARCHIVE_DEFAULT_HEADER_BYTES UINT64_C(100000000)
/* No tensor has more axes than this; more than TM_MAX_RANK can be listed only. */
#define TM_ARCHIVE_MAX_RANK 64u

/* Zero everywhere is a good default. */
typedef struct tm_archive_options {
  uint64_t max_header_bytes;    /* of each file; 0: TM_ARCHIVE_DEFAULT_HEADER_BYTES */
  uint32_t max_open_files;      /* further files are opened anew for each read; 0: an eighth of what the process may */
  bool     map_files;           /* where the system allows it */
  bool     allow_incomplete;    /* a file that ends too early opens, its incomplete tensors are flagged */
  bool     leaves_parts_untold; /* the caller says itself that a file is a part of a set that no index names */
  bool     is_alone;            /* a file that is part of a set is opened as if it were none */
  bool     skip_missing;        /* files beside an ONNX model that cannot be opened are left out, each but the first with a note */
} tm_archive_options;

/* The eighth that max_open_files speaks of, at least 1. */
uint32_t tm_archive_usual_open_files(void);

typedef struct tm_archive tm_archive;

#define TM_ARCHIVE_TENSOR_INCOMPLETE   0x1u     /* the file ends before the tensor does */
#define TM_ARCHIVE_TENSOR_UNKNOWN_TYPE 0x2u     /* this version does not know the type */

struct tm_stored_form;

typedef struct tm_archive_tensor {
  tm_string       name;         /* first: name_table.h; NUL-terminated, may hold any bytes */
  const char     *type_name;    /* as the file has it: "F8_E8M0", "gguf type 77"; may hold any text */
  const uint64_t *dims;         /* outermost first; `rank` of them */
  uint64_t        element_count;
  uint64_t        bytes;        /* 0 also when an unknown type leaves it open */
  uint64_t        offset;       /* from the beginning of its file */
  uint32_t        format;       /* TM_FORMAT_*; TM_FORMAT_NONE if unknown */
  uint32_t        rank;
  uint32_t        file_index;
  uint32_t        flags;        /* TM_ARCHIVE_TENSOR_* */
  const struct tm_stored_form *form;    /* stored_form.h; NULL: the file's bytes are what is used */
} tm_archive_tensor;

typedef struct tm_archive_file {
  const char *path;
  uint64_t    bytes;
  bool        is_mapped;
} tm_archive_file;

/* Opens a model file, the index of a sharded set, or a folder that holds one of them.  Any part of a model in several files
   stands for the whole, unless is_alone says otherwise: a split GGUF file always, a safetensors file if an index beside it
   names it and the set can be opened (else it is opened alone, with a note).  `options` may be NULL.
   TM_ERROR_ARGUMENT (empty path), TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_CORRUPT (also: not a model file, and what it
   is), TM_ERROR_LIMIT (header), TM_ERROR_CHANGED, TM_ERROR_NO_MEMORY */
tm_status tm_archive_open(tm_memory *memory, const tm_archive_options *options, const char *path, tm_archive **out_archive,
                          tm_error *error);
/* The same for a file that lies in memory; `bytes` must stay until close.  The index of a sharded set cannot be opened so. */
tm_status tm_archive_open_bytes(tm_memory *memory, const tm_archive_options *options, const char *name, const void *bytes,
                                uint64_t size_bytes, tm_archive **out_archive, tm_error *error);
void      tm_archive_close(tm_archive *archive);
/* Gives the system's handles of its files back: from now on each read opens a file anew.  Not while others use the archive. */
void      tm_archive_park(tm_archive *archive);

/* The path of the file that a folder stands for.   TM_ERROR_NOT_FOUND (none, or several), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_archive_find_in_folder(tm_arena *arena, const char *folder, char **out_path, tm_error *error);
/* Whether a file of that name is taken for a model, by its ending. */
bool tm_archive_is_model_name(const char *name);

/* "safetensors", "gguf v3" */
const char *tm_archive_format_name(const tm_archive *archive);
/* Who says where the data of that file lie, for people: "its header", or of a file of nothing but data "the model". */
const char *tm_archive_declarer(const tm_archive *archive, uint64_t file_index);
/* Whether the format has no names for tensors: one is called as its file is. */
bool tm_archive_is_nameless(const tm_archive *archive);

uint32_t tm_archive_file_count(const tm_archive *archive);
bool     tm_archive_file_at(const tm_archive *archive, uint32_t index, tm_archive_file *out_file);

/* In the order of the headers.  NULL past the end. */
uint64_t                 tm_archive_tensor_count(const tm_archive *archive);
const tm_archive_tensor *tm_archive_tensor_at(const tm_archive *archive, uint64_t index);
bool tm_archive_find(const tm_archive *archive, const char *name, uint64_t name_length, uint64_t *out_index);
uint64_t tm_archive_tensor_bytes(const tm_archive *archive);            /* of all tensors */
uint64_t tm_archive_incomplete_count(const tm_archive *archive);

uint64_t           tm_archive_metadata_count(const tm_archive *archive);
const tm_metadata *tm_archive_metadata_at(const tm_archive *archive, uint64_t index);
const tm_metadata *tm_archive_metadata_find(const tm_archive *archive, const char *key);

/* What is odd but no error, as sentences; the first few.  NULL past the end. */
#define TM_ARCHIVE_MAX_NOTES 16u
const char *tm_archive_note_at(const tm_archive *archive, uint64_t index);

/* The bytes [offset, offset + bytes) of a tensor.   TM_ERROR_ARGUMENT (outside the tensor, no such tensor),
   TM_ERROR_CORRUPT (the file ends before them), TM_ERROR_IO, TM_ERROR_CHANGED.  Of a tensor that the file holds in
   another form, what is used: little-endian, the last axis fastest. */
tm_status tm_archive_read(const tm_archive *archive, uint64_t index, uint64_t offset, void *out_data, uint64_t bytes,
                          tm_error *error);

/* The tensor's bytes if its file is mapped or in memory, the tensor complete and in no other form, else NULL; at any alignment.  A file
   that shrinks meanwhile reads as zeros: check afterwards. */
const void *tm_archive_mapped(const tm_archive *archive, uint64_t index);

/* Before a close: what was read of mapped files is unmapped by all cores (tm_mapping_forget_pages). */
void tm_archive_forget_pages(const tm_archive *archive, tm_pool *pool);

/* TM_ERROR_CHANGED when a file is not what it was when it was opened. */
tm_status tm_archive_check_unchanged(const tm_archive *archive, tm_error *error);
/* The same for the one file that holds a tensor. */
tm_status tm_archive_check_tensor(const tm_archive *archive, uint64_t index, tm_error *error);

#endif
