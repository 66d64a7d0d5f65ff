/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.h - what a file says about itself: values of a dozen types, arrays among them.  A value is a view of bytes that
 * its archive owns; an array keeps its elements as the file has them and is walked, not unpacked.
 */
#ifndef TM_FORMATS_METADATA_H
#define TM_FORMATS_METADATA_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

/* The numbers are those of GGUF's value types. */
#define TM_METADATA_U8      0u
#define TM_METADATA_I8      1u
#define TM_METADATA_U16     2u
#define TM_METADATA_I16     3u
#define TM_METADATA_U32     4u
#define TM_METADATA_I32     5u
#define TM_METADATA_F32     6u
#define TM_METADATA_BOOL    7u
#define TM_METADATA_STRING  8u
#define TM_METADATA_ARRAY   9u
#define TM_METADATA_U64    10u
#define TM_METADATA_I64    11u
#define TM_METADATA_F64    12u
#define TM_METADATA_TYPES  13u

/* Arrays in arrays, at most; the outermost counts. */
#define TM_METADATA_MAX_DEPTH 8u

typedef struct tm_metadata_value {
  uint32_t    type;             /* TM_METADATA_* */
  uint32_t    element_type;     /* of an ARRAY */
  uint64_t    count;            /* elements of an ARRAY, else 1 */
  const void *data;             /* little-endian, unaligned; of a STRING its text, of an ARRAY its elements one after another:
                                   a string is u64 length and text, an array is u32 type, u64 count and elements */
  uint64_t    bytes;
} tm_metadata_value;

typedef struct tm_metadata {
  tm_string         key;        /* first: name_table.h; NUL-terminated */
  tm_metadata_value value;
  uint32_t          file_index;
  uint32_t          reserved;
} tm_metadata;

/* Bytes of a value of a fixed-size type; 0 for STRING, ARRAY and unknown types. */
uint32_t tm_metadata_type_bytes(uint32_t type);
/* The least bytes that one element of that type takes in an array; 0 for unknown types. */
uint32_t tm_metadata_least_bytes(uint32_t type);
/* "u32"; "unknown" */
const char *tm_metadata_type_name(uint32_t type);

/* The value, if it is of a type that holds it without loss: integers of any width and bool for u64 and i64, all numbers
   for f64 (64-bit integers are rounded).  Else false. */
bool tm_metadata_as_u64(const tm_metadata_value *value, uint64_t *out_number);
bool tm_metadata_as_i64(const tm_metadata_value *value, int64_t *out_number);
bool tm_metadata_as_f64(const tm_metadata_value *value, double *out_number);
bool tm_metadata_as_bool(const tm_metadata_value *value, bool *out_truth);
bool tm_metadata_as_string(const tm_metadata_value *value, tm_string *out_text);

/* Of one type, with the same bytes. */
bool tm_metadata_is_same_value(const tm_metadata_value *a, const tm_metadata_value *b);

typedef struct tm_metadata_iterator {
  uint32_t             type;
  uint64_t             remaining;
  const unsigned char *next;
  const unsigned char *end;
} tm_metadata_iterator;

/* Walks the elements of an ARRAY; anything else has none. */
void tm_metadata_iterate(const tm_metadata_value *array, tm_metadata_iterator *out_iterator);
/* false at the end. */
bool tm_metadata_next(tm_metadata_iterator *iterator, tm_metadata_value *out_element);

/* "array of string[30522]" */
void tm_metadata_describe_type(const tm_metadata_value *value, char *out_text, uint64_t capacity);
/* One printable line: a string escaped, an array as [first, second, ...]; long ones are cut and end in "...".
   Always terminated; capacity is at least 16.  Returns the length. */
uint64_t tm_metadata_print(const tm_metadata_value *value, char *out_text, uint64_t capacity);

#endif
