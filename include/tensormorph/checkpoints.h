/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints.h - the part of tensormorph.h that is about checkpoints: reading and writing them.  tensormorph.h includes it, and what
 * stands at its head (ownership, structs, threads) holds here, too.
 */
#ifndef TENSORMORPH_CHECKPOINTS_H
#define TENSORMORPH_CHECKPOINTS_H

#include "tensormorph.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* -------------------------------------------------------------------------------------------------- checkpoints ---- */

/* [any thread] What is told of a checkpoint is fixed when it is opened; its bytes are looked at anew by every read, so each
   one may find that the file has changed. */
typedef struct tm_checkpoint tm_checkpoint;

#define TM_CHECKPOINT_ALLOW_INCOMPLETE 0x1u     /* open a truncated file; its incomplete tensors are flagged */
#define TM_CHECKPOINT_ALONE            0x2u     /* open a part of a model in several files as if it were a file of its own */

/* A safetensors, GGUF, ONNX or npy file, the index of a sharded set, or a folder with one of them.  Any part of a model in several
   files stands for the whole: of a split GGUF model always, of a safetensors set if an index beside the file names it and the
   set can be opened; else the file is opened alone, and a note says so.
   TM_ERROR_ARGUMENT (no path, unknown flags), TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_CORRUPT (what, where, expected,
   found), TM_ERROR_LIMIT (header too large), TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_open(tm_context *context, const char *path, uint32_t flags, tm_checkpoint **out_checkpoint, tm_error *error);
void tm_checkpoint_close(tm_checkpoint *checkpoint);

typedef struct tm_checkpoint_description {
  uint32_t    struct_size;
  uint32_t    file_count;
  const char *path;
  const char *format;                   /* "safetensors", "gguf v3", "gguf v3, big-endian", "onnx", "npy v1" */
  uint64_t    tensor_count;
  uint64_t    metadata_count;
  uint64_t    tensor_bytes;
  uint64_t    file_bytes;
  uint64_t    incomplete_count;
} tm_checkpoint_description;
void tm_checkpoint_describe(const tm_checkpoint *checkpoint, tm_checkpoint_description *out_description);

typedef struct tm_file_description {
  uint32_t    struct_size;
  uint32_t    mapped;
  const char *path;
  uint64_t    bytes;
} tm_file_description;
/* TM_OK, TM_END past the last. */
tm_status tm_checkpoint_file(const tm_checkpoint *checkpoint, uint32_t file, tm_file_description *out_description);

#define TM_TENSOR_INCOMPLETE   0x1u     /* the file ends before the tensor does */
#define TM_TENSOR_UNKNOWN_TYPE 0x2u     /* this version does not know the type; bytes may be 0 */

typedef struct tm_tensor_description {
  uint32_t    struct_size;
  uint32_t    flags;                    /* TM_TENSOR_* */
  const char *name;                     /* NUL-terminated; may hold any bytes: escape before printing */
  uint64_t    name_length;
  uint32_t    format;                   /* TM_FORMAT_NONE if unknown */
  uint32_t    rank;                     /* may be more than TM_MAX_RANK: then it can be listed only */
  const char *type_name;                /* as the file has it */
  const uint64_t *dims;                 /* outermost first */
  uint64_t    element_count;
  uint64_t    bytes;
  uint64_t    offset;                   /* in its file */
  uint32_t    file;
  uint32_t    reserved;
} tm_tensor_description;
/* In file order.   TM_OK, TM_END past the last. */
tm_status tm_checkpoint_tensor(const tm_checkpoint *checkpoint, uint64_t index, tm_tensor_description *out_description);
/* The index of the tensor of that name.   TM_OK, TM_ERROR_NOT_FOUND */
tm_status tm_checkpoint_find(const tm_checkpoint *checkpoint, const char *name, uint64_t *out_index);

typedef struct tm_metadata_description {
  uint32_t    struct_size;
  uint32_t    reserved;
  const char *key;
  uint64_t    key_length;
  const char *type;                     /* "string", "u32", "array of string[30522]" */
  const char *value;                    /* a string whole; anything else as text, cut and ending in "..." if it is long */
  uint64_t    value_length;
} tm_metadata_description;
/* The first call for an entry prints its value and keeps the text, which lives as long as the checkpoint.
   TM_OK, TM_END past the last, TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_metadata(tm_checkpoint *checkpoint, uint64_t index, tm_metadata_description *out_description);

/* What is odd about the files but no error (a key said twice, a total that does not add up): one sentence each.
   TM_OK, TM_END past the last. */
tm_status tm_checkpoint_note(const tm_checkpoint *checkpoint, uint64_t index, const char **out_note);

/* Reads bytes [offset, offset + bytes) of a tensor.   TM_ERROR_ARGUMENT (no such tensor, or outside of it),
   TM_ERROR_CORRUPT (the file ends before them), TM_ERROR_IO, TM_ERROR_CHANGED */
tm_status tm_checkpoint_read(tm_checkpoint *checkpoint, uint64_t index, uint64_t offset, void *out_data, uint64_t bytes, tm_error *error);
/* The tensor as an operand: without a copy from a mapped file, else read into memory of the context.
   TM_ERROR_ARGUMENT (no such tensor; a type that is unknown to this version, more than TM_MAX_RANK axes), TM_ERROR_CORRUPT
   (the file ends before the tensor does), TM_ERROR_IO, TM_ERROR_CHANGED, TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_load(tm_checkpoint *checkpoint, uint64_t index, tm_tensor **out_tensor, tm_error *error);
/* TM_OK, TM_ERROR_CHANGED (a file is not what it was when it was opened), TM_ERROR_IO */
tm_status tm_checkpoint_verify(tm_checkpoint *checkpoint, tm_error *error);

/* ----------------------------------------------------------------------------------------------------- writers ---- */

/*
 * Writes a checkpoint.  First it is planned: all but the bytes of the tensors is given, and what will be written, replaced and lost
 * can be asked for; nothing is touched.  tm_writer_begin makes the files beside their names (NAME.<12 digits>.part) and takes their
 * room on the disk; tm_writer_write fills them; tm_writer_finish brings them to the disk and puts them in their place.  A writer
 * that is destroyed before leaves everything as it was.
 *
 * One file takes the place of another at once: whoever opens the name finds the old one whole or the new one whole.  Of a set
 * nothing stands under its name before all is complete.  Then its index, as NAME.<12 digits>.whole, decides that the new set
 * counts; the shards and the index of the old one go; the new shards come; the index comes last.  So no two sets ever stand there
 * mixed, and a process that is killed in that moment leaves a set without an index, which tm_checkpoint_open says, and which the
 * next tm_writer_begin for the same path, or tm_writer_recover, completes.  Parts of a killed writer are removed by the same two.
 *
 * [any thread] for tm_writer_write and tm_writer_cancel; the others are called when no other call on that writer runs.
 */
typedef struct tm_writer tm_writer;

#define TM_WRITER_SAFETENSORS 1u
#define TM_WRITER_GGUF        2u        /* version 3 */

typedef struct tm_writer_tensor {
  const char     *name;                 /* any bytes in GGUF, UTF-8 in safetensors */
  uint64_t        name_length;
  const uint64_t *dims;                 /* outermost first; dense */
  uint32_t        rank;
  uint32_t        format;               /* TM_FORMAT_NONE: what type_name says, with `bytes` bytes */
  const char     *type_name;            /* of TM_FORMAT_NONE: a dtype of safetensors, or, written to safetensors, one that the
                                           library does not know but a safetensors file among metadata_from and inputs has */
  uint64_t        bytes;                /* of TM_FORMAT_NONE */
} tm_writer_tensor;

/* Types of metadata values; the numbers are those of GGUF. */
#define TM_VALUE_U8      0u
#define TM_VALUE_I8      1u
#define TM_VALUE_U16     2u
#define TM_VALUE_I16     3u
#define TM_VALUE_U32     4u
#define TM_VALUE_I32     5u
#define TM_VALUE_F32     6u
#define TM_VALUE_BOOL    7u             /* one byte */
#define TM_VALUE_STRING  8u
#define TM_VALUE_ARRAY   9u
#define TM_VALUE_U64    10u
#define TM_VALUE_I64    11u
#define TM_VALUE_F64    12u

typedef struct tm_writer_metadata {
  const char *key;
  uint64_t    key_length;
  const void *data;                     /* little-endian; of a STRING its text; of an ARRAY its elements one after another, a
                                           string among them as u64 length and text */
  uint64_t    bytes;
  uint64_t    count;                    /* elements of an ARRAY, else 0 */
  uint32_t    type;                     /* TM_VALUE_* */
  uint32_t    element_type;             /* of an ARRAY, else 0 */
} tm_writer_metadata;

/* Zero-initialise, then set struct_size and format.  Needed during tm_writer_create only. */
typedef struct tm_writer_options {
  uint32_t struct_size;
  uint32_t format;                      /* TM_WRITER_* */
  uint64_t shard_bytes;                 /* safetensors: no file has more, unless one tensor alone needs it; what fits in one file
                                           stays one.  0: one file */
  const tm_writer_tensor *tensors;      /* in the order wanted */
  uint64_t tensor_count;
  const tm_checkpoint *metadata_from;   /* all its metadata are kept, in GGUF byte for byte; NULL: none */
  const tm_writer_metadata *metadata;   /* added behind; of two with one key the later counts */
  uint64_t metadata_count;
  const tm_checkpoint *const *inputs;   /* none of their files may be written over; metadata_from is one of them anyway */
  uint32_t input_count;
  uint32_t reserved;
} tm_writer_options;

/* `path` is the file, X.safetensors or X.gguf.  A set is called X-00001-of-00002.safetensors ..., with X.safetensors.index.json.
   A link is followed for a single file, and what it leads to is replaced.
   TM_ERROR_ARGUMENT (what the format cannot hold, a name twice, an output that is an input by whatever name, a folder),
   TM_ERROR_NOT_FOUND (no such folder), TM_ERROR_IO (a folder that may not be written to, a pipe, a name too long),
   TM_ERROR_NO_MEMORY */
tm_status tm_writer_create(tm_context *context, const char *path, const tm_writer_options *options, tm_writer **out_writer,
                           tm_error *error);

typedef struct tm_writer_description {
  uint32_t    struct_size;
  uint32_t    format;                   /* TM_WRITER_* */
  uint64_t    file_count;
  uint64_t    tensor_count;
  uint64_t    tensor_bytes;
  uint64_t    file_bytes;               /* of all files; what they replace goes last, so it does not make room for them */
  uint64_t    free_bytes;               /* of the file system; UINT64_MAX: nobody can tell */
  uint64_t    removal_count;            /* of tm_writer_removal */
} tm_writer_description;
void tm_writer_describe(const tm_writer *writer, tm_writer_description *out_description);

typedef struct tm_writer_file_description {
  uint32_t    struct_size;
  uint32_t    replaces;                 /* 1: something of that name is there */
  const char *path;
  uint64_t    bytes;
} tm_writer_file_description;
/* TM_OK, TM_END past the last; of a set the index is the last. */
tm_status tm_writer_file(const tm_writer *writer, uint64_t file, tm_writer_file_description *out_description);
/* Files of an earlier checkpoint of this name that go when the new ones are there: shards of another number, the single file of
   what is a set now, or the index of what is one file now.   TM_OK, TM_END past the last */
tm_status tm_writer_removal(const tm_writer *writer, uint64_t index, const char **out_path);
/* What is lost or odd: one sentence each.   TM_OK, TM_END past the last */
tm_status tm_writer_note(const tm_writer *writer, uint64_t index, const char **out_note);
/* The size of a tensor's bytes as they are to be written.   TM_OK, TM_END past the last */
tm_status tm_writer_tensor_bytes(const tm_writer *writer, uint64_t tensor, uint64_t *out_bytes);

/* TM_BUSY (somebody else writes the same, or left parts on a file system without locks; may be tried again), TM_ERROR_IO (no
   room, a limit of the process, with native_code EEXIST: a file that was not there when it was planned ...), TM_ERROR_ARGUMENT
   (begun before, an input in the place of an output), TM_ERROR_NO_MEMORY */
tm_status tm_writer_begin(tm_writer *writer, tm_error *error);
/* The bytes [offset, offset + bytes) of a tensor, as its format has them; each byte once, pieces in any order.  When the system
   refuses a write, all that follow fail for the same reason.
   TM_ERROR_ARGUMENT (not begun, no such tensor, outside of it, written before), TM_ERROR_IO, TM_ERROR_CANCELLED,
   TM_ERROR_NO_MEMORY */
tm_status tm_writer_write(tm_writer *writer, uint64_t tensor, uint64_t offset, const void *data, uint64_t bytes, tm_error *error);
/* When all writes came back.  Takes as long as the disk needs.   TM_ERROR_ARGUMENT (bytes of a tensor are missing: they may still
   be written), TM_ERROR_IO (the text says where everything is then; EEXIST as in begin), TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY */
tm_status tm_writer_finish(tm_writer *writer, tm_error *error);
/* Writes and finish end soon with TM_ERROR_CANCELLED, up to the moment from which the new files count.  Safe to call from a signal
   handler. */
void tm_writer_cancel(tm_writer *writer);
void tm_writer_destroy(tm_writer *writer);

/* Cleans up after writers of `path` (or of the set whose index that is) that were killed.  Counts may be NULL: parts that were
   removed, sets that are now in their place.   TM_BUSY (a writer of it lives), TM_ERROR_ARGUMENT (no path, a folder),
   TM_ERROR_NOT_FOUND (no such folder), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_writer_recover(tm_context *context, const char *path, uint64_t *out_removed_count, uint64_t *out_completed_count,
                            tm_error *error);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* TENSORMORPH_CHECKPOINTS_H */
