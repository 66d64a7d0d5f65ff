/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h - what the parts of the ONNX reader share: the state of reading one model, its tensors, and what lies in other files. */
#ifndef TM_FORMATS_ONNX_H
#define TM_FORMATS_ONNX_H

#include "formats/archive_builder.h"
#include "formats/protobuf_wire.h"

/* Of a tensor's name with the names of the nodes around it. */
#define TM_ONNX_LONGEST_NAME UINT64_C(65535)

/* Where the numbers of a typed field lie. */
typedef struct tm_onnx_segment {
  tm_wire_range content;
} tm_onnx_segment;

/* A tensor whose bytes are in another file. */
typedef struct tm_onnx_external {
  const char       *location;   /* relative to the model's folder */
  uint64_t          order;      /* of the tensor in the model */
  tm_archive_tensor tensor;     /* its name, dims and offset in that file */
} tm_onnx_external;

typedef struct tm_onnx {
  tm_archive       *archive;
  tm_wire           wire;
  const char       *label;
  char             *name;       /* TM_ONNX_LONGEST_NAME bytes and its end: of the tensor being read */
  tm_onnx_segment  *segments;   /* of the tensor being read */
  uint64_t          segment_count, segment_capacity;
  tm_onnx_external *externals;
  uint64_t          external_count, external_capacity;
  tm_error         *error;
} tm_onnx;

/* Fields of a TensorProto that hold numbers. */
#define TM_ONNX_FLOAT_DATA  4u
#define TM_ONNX_INT32_DATA  5u
#define TM_ONNX_INT64_DATA  7u
#define TM_ONNX_RAW_DATA    9u
#define TM_ONNX_DOUBLE_DATA 10u
#define TM_ONNX_UINT64_DATA 11u

#define TM_ONNX_FLOAT 1u
#define TM_ONNX_INT64 7u
#define TM_ONNX_STRING 8u

/* A TensorProto as far as its parts have come. */
typedef struct tm_onnx_tensor {
  tm_string     name;           /* with the scope, in parser->name */
  tm_wire_range own_name;
  uint64_t      offset;         /* of the message */
  uint64_t      dims[TM_ARCHIVE_MAX_RANK];
  uint32_t      rank;
  uint64_t      data_type;
  bool          is_external;
  bool          has_raw;
  tm_wire_range raw;
  uint32_t      typed_field;    /* the TM_ONNX_*_DATA whose numbers are in the segments; 0: none */
  const char   *location;
  uint64_t      external_offset, external_bytes;
  bool          has_external_bytes;
} tm_onnx_tensor;

/* Reads a TensorProto, but its name only as a range.  TM_END: the file ends within it. */
tm_status tm_onnx_read_tensor(tm_onnx *parser, tm_wire_range message, tm_onnx_tensor *out_tensor);
/* Adds it to the archive, or to the external ones.  TM_END: the file ends before it is known what it is. */
tm_status tm_onnx_add_tensor(tm_onnx *parser, const tm_onnx_tensor *tensor);
/* A range as a text of the archive's arena. */
tm_status tm_onnx_text(tm_onnx *parser, tm_wire_range range, tm_string *out_text);
/* One more run of numbers. */
tm_status tm_onnx_add_segment(tm_onnx *parser, tm_wire_range content);
/* How many numbers the segments hold.  TM_END: the file ends within them. */
tm_status tm_onnx_count_numbers(tm_onnx *parser, const tm_onnx_tensor *tensor, uint64_t *out_count);

/* Adds the files with external tensors, and these.   TM_ERROR_NOT_FOUND, TM_ERROR_CORRUPT (they lead out of the folder; too
   short), TM_ERROR_ARGUMENT (a model in memory) ... */
tm_status tm_onnx_open_externals(tm_onnx *parser, const tm_file *model);

tm_status tm_onnx_fail(const tm_onnx *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
tm_status tm_onnx_fail_memory(const tm_onnx *parser);

#endif
