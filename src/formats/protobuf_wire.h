/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf_wire.h - walks the messages of a protobuf file field by field, without a schema and without reading what a field
 * holds: a message is a range of the file, and so is the content of each of its fields.
 */
#ifndef TM_FORMATS_PROTOBUF_WIRE_H
#define TM_FORMATS_PROTOBUF_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/window.h"

#define TM_WIRE_VARINT  0u
#define TM_WIRE_FIXED64 1u
#define TM_WIRE_LENGTH  2u      /* text, bytes, a message or packed numbers */
#define TM_WIRE_FIXED32 5u

typedef struct tm_wire {
  tm_window   window;
  const char *label;            /* of the file, for messages */
  uint64_t    file_bytes;
  uint64_t    limit_bytes;      /* of what is not passed over */
  uint64_t    walked_bytes;
  bool        is_cut;           /* a message goes on beyond the end of the file and was walked up to there */
  tm_error   *error;
} tm_wire;

typedef struct tm_wire_range {
  uint64_t at;                  /* offset in the file */
  uint64_t end;
} tm_wire_range;

typedef struct tm_wire_field {
  uint32_t      number;
  uint32_t      type;           /* TM_WIRE_* */
  uint64_t      value;          /* of VARINT, FIXED64 and FIXED32 */
  tm_wire_range content;        /* what follows the tag, of LENGTH what follows the length */
} tm_wire_field;

/* The next field of the message that is left in `message`, which moves on.  TM_END: there is none, or the file ends
   (is_cut).   TM_ERROR_CORRUPT, TM_ERROR_LIMIT, TM_ERROR_IO ... */
tm_status tm_wire_next(tm_wire *wire, tm_wire_range *message, tm_wire_field *out_field);

/* The next of packed numbers, likewise. */
tm_status tm_wire_next_varint(tm_wire *wire, tm_wire_range *numbers, uint64_t *out_value);

/* Counts bytes against the limit that are kept for the sake of what was walked.   TM_ERROR_LIMIT */
tm_status tm_wire_count(tm_wire *wire, uint64_t bytes);

/* The bytes of a range of at most TM_WINDOW_BYTES, valid until the next call. */
tm_status tm_wire_take(tm_wire *wire, tm_wire_range range, const unsigned char **out_bytes);

#endif
