/* SPDX-License-Identifier: Apache-2.0 */
/* made_safetensors.h - safetensors files made in tests: a header's text with its length before it and data behind it. */
#ifndef TM_TESTS_FORMATS_MADE_SAFETENSORS_H
#define TM_TESTS_FORMATS_MADE_SAFETENSORS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct made_file {
  unsigned char *bytes;
  uint64_t       size;
} made_file;

/* Data bytes count up from 0.  The caller frees bytes. */
static inline made_file make_safetensors(const char *header, uint64_t header_bytes, uint64_t data_bytes) {
  made_file made = { malloc((size_t)(8 + header_bytes + data_bytes)), 8 + header_bytes + data_bytes };
  for (int i = 0; i < 8; i++) made.bytes[i] = (unsigned char)(header_bytes >> (8 * i));
  memcpy(made.bytes + 8, header, (size_t)header_bytes);
  for (uint64_t i = 0; i < data_bytes; i++) made.bytes[8 + header_bytes + i] = (unsigned char)i;
  return made;
}

#endif
