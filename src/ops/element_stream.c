/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/element_stream.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/format.h"

/* Strided elements pass through a packed buffer of this many bytes, so that codecs see dense runs only. */
#define PACKED_BYTES 4096u

tm_element_stream tm_stream_along(const tm_operand *operand, uint32_t axis) {
  const tm_format_info *info = tm_format_find(operand->format);
  const bool has_axis = axis < operand->rank;
  return (tm_element_stream){ .codec = tm_codec_find(operand->format),
                              .block_elements = info->block_elements,
                              .block_bytes = info->block_bytes,
                              .step_bytes = has_axis ? operand->strides_bytes[axis] : (int64_t)info->block_bytes };
}

static bool is_dense(const tm_element_stream *stream) { return stream->step_bytes == (int64_t)stream->block_bytes; }

/* Fixed sizes let the compiler turn each copy into one load and one store. */
#define STEP_COPY(bytes)                                                                                    \
  for (uint64_t i = 0; i < blocks; i++) memcpy(to + (int64_t)i * to_step, from + (int64_t)i * from_step, bytes)

static void copy_blocks(const unsigned char *from, int64_t from_step, unsigned char *to, int64_t to_step,
                        uint64_t blocks, uint32_t block_bytes) {
  switch (block_bytes) {
    case 1: STEP_COPY(1); break;
    case 2: STEP_COPY(2); break;
    case 4: STEP_COPY(4); break;
    case 8: STEP_COPY(8); break;
    default: STEP_COPY(block_bytes); break;
  }
}

/* Blocks that fit the packed buffer. */
static uint64_t packed_blocks(const tm_element_stream *stream) { return PACKED_BYTES / stream->block_bytes; }

static const unsigned char *gather(const tm_element_stream *stream, const unsigned char *source, uint64_t first,
                                   uint64_t blocks, unsigned char *packed) {
  copy_blocks(source + (int64_t)first * stream->step_bytes, stream->step_bytes, packed, stream->block_bytes, blocks,
              stream->block_bytes);
  return packed;
}

static void scatter(const tm_element_stream *stream, const unsigned char *packed, uint64_t first, uint64_t blocks,
                    unsigned char *target) {
  copy_blocks(packed, stream->block_bytes, target + (int64_t)first * stream->step_bytes, stream->step_bytes, blocks,
              stream->block_bytes);
}

void tm_stream_load(const tm_element_stream *stream, const void *address, uint64_t elements, double *out_values) {
  unsigned char packed[PACKED_BYTES];
  if (is_dense(stream)) {
    stream->codec->decode(address, elements, out_values);
    return;
  }
  const uint64_t blocks = elements / stream->block_elements;
  for (uint64_t at = 0, n; at < blocks; at += n) {
    n = tm_min_u64(packed_blocks(stream), blocks - at);
    stream->codec->decode(gather(stream, address, at, n, packed), n * stream->block_elements,
                          out_values + at * stream->block_elements);
  }
}

void tm_stream_load_integer(const tm_element_stream *stream, const void *address, uint64_t elements,
                            int64_t *out_values) {
  unsigned char packed[PACKED_BYTES];
  if (is_dense(stream)) {
    stream->codec->decode_integer(address, elements, out_values);
    return;
  }
  const uint64_t blocks = elements / stream->block_elements;
  for (uint64_t at = 0, n; at < blocks; at += n) {
    n = tm_min_u64(packed_blocks(stream), blocks - at);
    stream->codec->decode_integer(gather(stream, address, at, n, packed), n * stream->block_elements,
                                  out_values + at * stream->block_elements);
  }
}

void tm_stream_store(const tm_element_stream *stream, const double *values, uint64_t elements, void *address) {
  unsigned char packed[PACKED_BYTES];
  if (is_dense(stream)) {
    stream->codec->encode(values, elements, address);
    return;
  }
  const uint64_t blocks = elements / stream->block_elements;
  for (uint64_t at = 0, n; at < blocks; at += n) {
    n = tm_min_u64(packed_blocks(stream), blocks - at);
    stream->codec->encode(values + at * stream->block_elements, n * stream->block_elements, packed);
    scatter(stream, packed, at, n, address);
  }
}

void tm_stream_store_integer(const tm_element_stream *stream, const int64_t *values, uint64_t elements, void *address) {
  unsigned char packed[PACKED_BYTES];
  if (is_dense(stream)) {
    stream->codec->encode_integer(values, elements, address);
    return;
  }
  const uint64_t blocks = elements / stream->block_elements;
  for (uint64_t at = 0, n; at < blocks; at += n) {
    n = tm_min_u64(packed_blocks(stream), blocks - at);
    stream->codec->encode_integer(values + at * stream->block_elements, n * stream->block_elements, packed);
    scatter(stream, packed, at, n, address);
  }
}

void tm_stream_move(const tm_element_stream *from, const void *source, const tm_element_stream *to, void *target,
                    uint64_t elements) {
  const uint64_t blocks = elements / from->block_elements;
  if (is_dense(from) && is_dense(to)) {
    memcpy(target, source, (size_t)(blocks * from->block_bytes));
    return;
  }
  copy_blocks(source, from->step_bytes, target, to->step_bytes, blocks, from->block_bytes);
}

void tm_stream_clear(const tm_element_stream *stream, uint64_t elements, void *address) {
  unsigned char *bytes = address;
  for (uint64_t i = 0; i < elements / stream->block_elements; i++)
    memset(bytes + (int64_t)i * stream->step_bytes, 0, stream->block_bytes);
}
