/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_writer.h - writes a checkpoint: planned first, then filled by any number of threads, then finished or given up.
 *
 *   create   everything but the bytes of the tensors is known: files, sizes, places, what is replaced.  Nothing is touched
 *   begin    what a killed writer left is cleaned up, the files are made beside their names, their room on the disk is taken
 *   write    pieces of tensors, each byte once, in any order, from any thread
 *   finish   all is brought to the disk and put in its place; pending_set.h says in which order
 *   destroy  before that: nothing is left, and what was there before is as it was
 */
#ifndef TM_FORMATS_CHECKPOINT_WRITER_H
#define TM_FORMATS_CHECKPOINT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "formats/metadata.h"
#include "tensormorph/types.h"

#define TM_WRITE_SAFETENSORS 1u
#define TM_WRITE_GGUF        2u

typedef struct tm_write_tensor {
  tm_string       name;
  const uint64_t *dims;         /* outermost first */
  uint32_t        rank;
  uint32_t        format;       /* TM_FORMAT_NONE: a type that this version does not know, or what type_name says in safetensors */
  const char     *type_name;    /* with TM_FORMAT_NONE, else not looked at */
  uint64_t        bytes;        /* with TM_FORMAT_NONE, else not looked at */
  bool            is_own_type;  /* with TM_FORMAT_NONE: a safetensors file calls the type so, and may pass it on to another one */
} tm_write_tensor;

/* Needed during create only, but for what is said of inputs. */
typedef struct tm_write_request {
  uint32_t               format;        /* TM_WRITE_* */
  const char            *path;
  uint64_t               shard_bytes;   /* 0: one file; else a file has no more bytes, unless one tensor alone needs them */
  const tm_write_tensor *tensors;       /* in the order wanted */
  uint64_t               tensor_count;
  const tm_metadata     *metadata;      /* in order; of two with one key the later counts */
  uint64_t               metadata_count;
  const tm_metadata     *late;          /* one of them, a string of which only the length is known yet: replace_late; NULL: none */
  const char *const     *input_paths;   /* files that must not be written over; copied */
  uint64_t               input_count;
  bool                  *out_is_unholdable;     /* what is refused is what would be written, not where; NULL: nobody asks */
} tm_write_request;

typedef struct tm_checkpoint_writer tm_checkpoint_writer;

typedef struct tm_write_file {
  const char *path;
  uint64_t    bytes;
  bool        replaces;         /* something of that name was there when the plan was made */
} tm_write_file;

typedef struct tm_write_summary {
  const char *format_name;
  uint64_t    file_count;
  uint64_t    tensor_count;
  uint64_t    tensor_bytes;
  uint64_t    file_bytes;       /* of all files, beside what they replace */
  uint64_t    free_bytes;       /* of the file system when the plan was made; UINT64_MAX: nobody can tell */
} tm_write_summary;

/* TM_ERROR_ARGUMENT (what the format cannot hold, a name twice, a path that is an input, a folder, a pipe ...), TM_ERROR_NOT_FOUND
   (no such folder), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_writer_create(tm_memory *memory, const tm_write_request *request, tm_checkpoint_writer **out_writer,
                                      tm_error *error);
void      tm_checkpoint_writer_summarize(const tm_checkpoint_writer *writer, tm_write_summary *out_summary);
/* false past the last; of a set the index is the last. */
bool        tm_checkpoint_writer_file_at(const tm_checkpoint_writer *writer, uint64_t index, tm_write_file *out_file);
/* Whether a file that is there is replaced or removed. */
bool        tm_checkpoint_writer_replaces(const tm_checkpoint_writer *writer);
/* Other files that go when the new ones are there, as paths; NULL past the last. */
const char *tm_checkpoint_writer_removal_at(const tm_checkpoint_writer *writer, uint64_t index);
/* What is lost or odd, as sentences; NULL past the last. */
const char *tm_checkpoint_writer_note_at(const tm_checkpoint_writer *writer, uint64_t index);
/* Where a tensor lies: which file, and where it begins there.  false: there is no such tensor. */
bool tm_checkpoint_writer_place(const tm_checkpoint_writer *writer, uint64_t tensor, uint64_t *out_file, uint64_t *out_offset,
                                uint64_t *out_bytes);

/* TM_BUSY (somebody writes the same), TM_ERROR_ARGUMENT (begun before, an input in the place of an output), TM_ERROR_IO (no room
   among others), TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_writer_begin(tm_checkpoint_writer *writer, tm_error *error);
/* Any thread.  After a failure nothing more is written.   TM_ERROR_ARGUMENT (not begun, no such tensor, outside of it, written
   before), TM_ERROR_IO, TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_writer_write(tm_checkpoint_writer *writer, uint64_t tensor, uint64_t offset, const void *data,
                                     uint64_t bytes, tm_error *error);
/* Between begin and finish: the text of the request's `late` in all files.   TM_ERROR_ARGUMENT (there is none, or the text does not
   take as many bytes as the one that was given), TM_ERROR_IO, TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_writer_replace_late(tm_checkpoint_writer *writer, tm_string text, tm_error *error);
/* After all writes came back.   TM_ERROR_ARGUMENT (bytes are missing; more may be written), TM_ERROR_IO, TM_ERROR_CANCELLED,
   TM_ERROR_NO_MEMORY, and what a write failed with */
tm_status tm_checkpoint_writer_finish(tm_checkpoint_writer *writer, tm_error *error);
/* Any thread, also in a signal handler: writes and finish end soon, up to the moment from which the new files count. */
void tm_checkpoint_writer_cancel(tm_checkpoint_writer *writer);
/* When no other call runs: what is not in its place goes, as with destroy; what is told of the writer stays. */
void tm_checkpoint_writer_abandon(tm_checkpoint_writer *writer);
void tm_checkpoint_writer_destroy(tm_checkpoint_writer *writer);

#endif
