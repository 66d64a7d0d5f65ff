/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - what the library knows of each TM_FORMAT_*: one row a format.  Names, sizes and abilities all come from
 * here.  Scalar decoding and encoding of the values lies in codec.h.
 */
#ifndef TM_TENSOR_FORMAT_H
#define TM_TENSOR_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

typedef enum tm_format_kind {
  TM_KIND_FLOAT,                /* plain or sub-byte floating point */
  TM_KIND_SIGNED,
  TM_KIND_UNSIGNED,
  TM_KIND_BOOL,
  TM_KIND_COMPLEX,
  TM_KIND_BLOCK                 /* quantized blocks of the GGUF family */
} tm_format_kind;

#define TM_NO_GGUF_TYPE (-1)

typedef struct tm_format_info {
  uint32_t       format;
  tm_format_kind kind;
  const char    *name;          /* lower case, as the command prints and parses it */
  const char    *safetensors;   /* dtype string of safetensors; NULL if it has none */
  int32_t        gguf_type;     /* number in a GGUF file; TM_NO_GGUF_TYPE if it has none */
  uint32_t       block_elements;
  uint32_t       block_bytes;
  bool           has_values;    /* there is a scalar decoder, so operations can read it */
  bool           has_arithmetic; /* and an encoder, so they can write it, too */
} tm_format_info;

/* The row of a format, or NULL for an unknown or private number. */
const tm_format_info *tm_format_find(uint32_t format);
/* Rows by index, for listings; NULL past the end. */
const tm_format_info *tm_format_at(uint32_t index);
/* The block formats that operations can read, or of them those that they can write, as "q4_0 or q8_0"; cut where `capacity` is small.
   Returns out_text. */
const char *tm_format_list_blocks(bool can_write, char *out_text, uint64_t capacity);
/* Case-insensitive search by `name`, or exact by safetensors dtype, or by GGUF type number; NULL if unknown. */
const tm_format_info *tm_format_by_name(const char *name, uint64_t length);
const tm_format_info *tm_format_by_safetensors(const char *dtype, uint64_t length);
/* NULL also for the eight retired GGUF numbers; tm_gguf_type_is_retired tells them apart from unknown ones. */
const tm_format_info *tm_format_by_gguf(uint32_t gguf_type);
bool tm_gguf_type_is_retired(uint32_t gguf_type);
/* One past the last GGUF type number that this version knows. */
#define TM_GGUF_TYPE_COUNT 43u

/* Bytes of `elements` elements along the last axis; false when they do not fill whole blocks or the size overflows. */
bool tm_format_bytes(const tm_format_info *info, uint64_t elements, uint64_t *out_bytes);

/* The bytes of so many dense elements: whole blocks. */
static inline uint64_t tm_format_bytes_of(const tm_format_info *info, uint64_t elements) {
  return elements / info->block_elements * info->block_bytes;
}

#endif
