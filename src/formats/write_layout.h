/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_layout.h - where everything of a checkpoint that is to be written will lie: its files with their headers, and each
 * tensor's place in them.  checkpoint_writer.c fills in what is wanted, a tm_write_format decides on the rest.  Adding a format
 * is one file that defines a tm_write_format, and one row in checkpoint_writer.c.  Only src/formats includes this.
 */
#ifndef TM_FORMATS_WRITE_LAYOUT_H
#define TM_FORMATS_WRITE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "formats/byte_buffer.h"
#include "formats/metadata.h"
#include "formats/piece_list.h"
#include "tensor/format.h"

typedef struct tm_written_tensor {
  tm_string             name;           /* first: name_table.h */
  const tm_format_info *info;           /* NULL: a type that is passed on by its name */
  const char           *type_name;      /* if info is NULL */
  bool                  is_own_type;    /* if info is NULL: safetensors has the name from safetensors */
  const uint64_t       *dims;           /* outermost first; the caller's, until the layout is arranged */
  uint32_t              rank;
  uint32_t              file;           /* decided by the format, with offset */
  uint64_t              element_count;
  uint64_t              bytes;
  uint64_t              offset;         /* in its file */
  tm_piece_list         pieces;         /* that were written, unless all is */
  bool                  is_whole;       /* all of it is written */
} tm_written_tensor;

typedef struct tm_written_file {
  const char    *name;                  /* in the target's folder */
  const char    *path;                  /* for people */
  tm_byte_buffer header;
  uint64_t       bytes;
  uint64_t       late_offset;           /* of the late text's value; 0: it is not in this file */
  bool           replaces;              /* something of that name is there */
  bool           was_there;             /* when it was planned */
} tm_written_file;

#define TM_WRITE_MAX_NOTES 16u

typedef struct tm_write_layout {
  tm_memory          *memory;
  tm_arena            arena;
  const char         *label;            /* the target, for messages */
  const char         *name;             /* of the target, in its folder */
  uint64_t            shard_bytes;      /* 0: one file */
  tm_written_tensor  *tensors;
  uint64_t            tensor_count;
  const tm_metadata **metadata;         /* no key twice; the caller's, until the layout is arranged */
  uint64_t            metadata_count;
  const tm_metadata  *late;             /* one of them; NULL: none */
  uint64_t            late_bytes;       /* that its value takes in a file */
  bool                late_is_json;     /* as a string of JSON, else as it is */
  tm_written_file    *files;            /* of a set the index is the last */
  uint64_t            file_count, file_capacity;
  const char         *notes[TM_WRITE_MAX_NOTES];
  uint32_t            note_count;
} tm_write_layout;

typedef struct tm_write_format {
  const char *name;
  const char *extension;
  /* Decides on files, headers and places.   TM_ERROR_ARGUMENT (what the format cannot hold), TM_ERROR_NO_MEMORY */
  tm_status (*arrange)(tm_write_layout *layout, tm_error *error);
} tm_write_format;

extern const tm_write_format tm_safetensors_write_format;
extern const tm_write_format tm_gguf_write_format;

/* The next file, empty.  NULL without memory.  `name` must be in the layout's arena. */
tm_written_file *tm_write_layout_add_file(tm_write_layout *layout, const char *name);
/* Past the first few it is dropped. */
tm_status tm_write_layout_note(tm_write_layout *layout, tm_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
tm_status tm_write_layout_fail_memory(const tm_write_layout *layout, tm_error *error);

/* Refuses a layout in which `why` says something of any tensor: how many, the first one's name, and the reason. */
typedef const char *(*tm_write_refusal_fn)(const tm_written_tensor *tensor);
tm_status tm_write_layout_check(const tm_write_layout *layout, tm_write_refusal_fn why, tm_error *error);

/* The target's name without the extension; in the arena, NULL without memory. */
const char *tm_write_layout_stem(tm_write_layout *layout, const char *extension);

#endif
