/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/protobuf_wire.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/checked.h"
#include "base/error.h"
#include "formats/bytes.h"
#include "formats/varint.h"

#define LARGEST_FIELD ((UINT32_C(1) << 29) - 1)

static tm_status fail_end(tm_wire *wire, const tm_wire_range *message, uint64_t begin) {
  if (message->end > wire->file_bytes) {
    wire->is_cut = true;
    return TM_END;
  }
  return tm_fail(wire->error, TM_ERROR_CORRUPT, "%s: the field at offset %" PRIu64 " goes beyond the end of its message at "
                 "offset %" PRIu64, wire->label, begin, message->end);
}

tm_status tm_wire_count(tm_wire *wire, uint64_t bytes) {
  wire->walked_bytes += bytes;
  if (wire->walked_bytes <= wire->limit_bytes) return TM_OK;
  return tm_fail(wire->error, TM_ERROR_LIMIT, "%s: the structure around the data is longer than the limit of %" PRIu64 " bytes; if "
                 "that is meant, raise it: max_header_bytes", wire->label, wire->limit_bytes);
}

/* What of the message is in the file. */
static uint64_t end_of(const tm_wire *wire, const tm_wire_range *message) { return tm_min_u64(message->end, wire->file_bytes); }

static tm_status read_varint(tm_wire *wire, tm_wire_range *message, uint64_t *out_value) {
  const uint64_t begin = message->at, end = end_of(wire, message);
  const unsigned char *byte;
  tm_varint varint = { 0 };
  tm_varint_state state = TM_VARINT_PART;
  while (state == TM_VARINT_PART) {
    if (message->at >= end) return fail_end(wire, message, begin);
    TM_TRY(tm_window_take(&wire->window, 1, &byte, wire->error));
    message->at++;
    state = tm_varint_push(&varint, *byte);
  }
  if (state == TM_VARINT_TOO_LONG)
    return tm_fail(wire->error, TM_ERROR_CORRUPT, "%s: the number at offset %" PRIu64 " is longer than %u bytes", wire->label, begin,
                   TM_VARINT_MAX_BYTES);
  *out_value = varint.value;
  return TM_OK;
}

static tm_status read_fixed(tm_wire *wire, tm_wire_range *message, uint32_t bytes, uint64_t *out_value) {
  const unsigned char *data;
  if (message->at > end_of(wire, message) || end_of(wire, message) - message->at < bytes) return fail_end(wire, message, message->at);
  TM_TRY(tm_window_take(&wire->window, bytes, &data, wire->error));
  message->at += bytes;
  *out_value = tm_load_le(data, bytes);
  return TM_OK;
}

/* The content of a LENGTH field stays where it is; it may go beyond the file where its message does. */
static tm_status read_length(tm_wire *wire, tm_wire_range *message, tm_wire_field *field) {
  const uint64_t begin = message->at;
  uint64_t length;
  TM_TRY(read_varint(wire, message, &length));
  if (length > message->end - message->at)
    return tm_fail(wire->error, TM_ERROR_CORRUPT, "%s: the field at offset %" PRIu64 " claims %" PRIu64 " bytes, but %s ends at offset "
                   "%" PRIu64, wire->label, begin, length, message->end > wire->file_bytes ? "the file" : "its message",
                   end_of(wire, message));
  field->content = (tm_wire_range){ message->at, message->at + length };
  message->at += length;
  return TM_OK;
}

static tm_status read_content(tm_wire *wire, tm_wire_range *message, tm_wire_field *field) {
  const uint64_t begin = message->at;
  tm_status status = TM_OK;
  switch (field->type) {
    case TM_WIRE_LENGTH: return read_length(wire, message, field);
    case TM_WIRE_VARINT: status = read_varint(wire, message, &field->value); break;
    case TM_WIRE_FIXED32: status = read_fixed(wire, message, 4, &field->value); break;
    case TM_WIRE_FIXED64: status = read_fixed(wire, message, 8, &field->value); break;
    default:
      return tm_fail(wire->error, TM_ERROR_CORRUPT, "%s: the field before offset %" PRIu64 " is of the unknown kind %" PRIu32
                     ": damaged, or no protobuf file", wire->label, begin, field->type);
  }
  field->content = (tm_wire_range){ begin, message->at };
  return status;
}

tm_status tm_wire_next(tm_wire *wire, tm_wire_range *message, tm_wire_field *out_field) {
  const uint64_t begin = message->at;
  uint64_t tag;
  if (message->at == message->end) return TM_END;
  if (message->at > wire->file_bytes) return fail_end(wire, message, begin);
  tm_window_seek(&wire->window, message->at);
  TM_TRY(read_varint(wire, message, &tag));
  if (tag >> 3 == 0 || tag >> 3 > LARGEST_FIELD)
    return tm_fail(wire->error, TM_ERROR_CORRUPT, "%s: the field at offset %" PRIu64 " has the impossible number %" PRIu64
                   ": damaged, or no protobuf file", wire->label, begin, tag >> 3);
  *out_field = (tm_wire_field){ .number = (uint32_t)(tag >> 3), .type = (uint32_t)(tag & 7) };
  TM_TRY(read_content(wire, message, out_field));
  return tm_wire_count(wire, out_field->content.at - begin);
}

tm_status tm_wire_next_varint(tm_wire *wire, tm_wire_range *numbers, uint64_t *out_value) {
  if (numbers->at == numbers->end) return TM_END;
  if (numbers->at > wire->file_bytes) return fail_end(wire, numbers, numbers->at);
  tm_window_seek(&wire->window, numbers->at);
  return read_varint(wire, numbers, out_value);
}

tm_status tm_wire_take(tm_wire *wire, tm_wire_range range, const unsigned char **out_bytes) {
  if (range.end > wire->file_bytes) return fail_end(wire, &range, range.at);
  TM_TRY(tm_wire_count(wire, range.end - range.at));
  tm_window_seek(&wire->window, range.at);
  return tm_window_take(&wire->window, range.end - range.at, out_bytes, wire->error);
}
