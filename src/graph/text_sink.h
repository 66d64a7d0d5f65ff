/* SPDX-License-Identifier: Apache-2.0 */
/* text_sink.h - text that is counted whole and kept as far as there is room. */
#ifndef TM_GRAPH_TEXT_SINK_H
#define TM_GRAPH_TEXT_SINK_H

#include <stdint.h>

#include "tensormorph/types.h"

typedef struct tm_text_sink {
  char    *text;                /* NULL with capacity 0 */
  uint64_t capacity;            /* the NUL included */
  uint64_t length;              /* of the whole, the NUL not included */
} tm_text_sink;

void tm_sink_bytes(tm_text_sink *sink, const char *bytes, uint64_t length);
/* Short pieces: at most 255 bytes, what is beyond is cut. */
void tm_sink_format(tm_text_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* In double quotes, with quotes and backslashes escaped as JSON and DOT both have it; clean text (tm_text_is_clean). */
void tm_sink_quoted(tm_text_sink *sink, tm_string text);
/* Two lower-case digits a byte. */
void tm_sink_hex(tm_text_sink *sink, const void *bytes, uint64_t count);
/* "[4,8]" */
void tm_sink_dims(tm_text_sink *sink, const tm_operand *operand);
void tm_sink_strides(tm_text_sink *sink, const tm_operand *operand);
/* Terminates what was kept. */
void tm_sink_finish(tm_text_sink *sink);

#endif
