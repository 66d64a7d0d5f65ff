/* SPDX-License-Identifier: Apache-2.0 */
/* work_kind.h - an operation with the formats of its operands: what is held against a device is about one such kind. */
#ifndef TM_PLUGIN_WORK_KIND_H
#define TM_PLUGIN_WORK_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/plugin.h"

/* What a record of a device is kept under, in memory and on disk. */
typedef struct tm_work_kind {
  uint32_t op;                  /* TM_OP_NONE: the device as such */
  uint32_t format_count;        /* inputs, then outputs; 0: all formats */
  uint32_t formats[TM_MAX_OPERANDS];
} tm_work_kind;

tm_work_kind tm_work_kind_of(const tm_operation *operation);
bool         tm_work_kind_equal(const tm_work_kind *a, const tm_work_kind *b);
/* For people: "f32,q4_0,f32"; "" for all formats. */
void         tm_work_kind_formats(const tm_work_kind *kind, char *text, uint64_t capacity);

/* For files: two fields with a tab between them, the operation and the formats in hexadecimal. */
#define TM_WORK_KIND_BYTES 160
void tm_work_kind_print(const tm_work_kind *kind, char text[TM_WORK_KIND_BYTES]);
/* Takes the two fields back; false if they are anything else. */
bool tm_work_kind_parse(const char *op, const char *formats, tm_work_kind *out_kind);

#endif
