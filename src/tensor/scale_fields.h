/* SPDX-License-Identifier: Apache-2.0 */
/* scale_fields.h - where the block formats keep the scales that all of a block's values are multiplied with. */
#ifndef TM_TENSOR_SCALE_FIELDS_H
#define TM_TENSOR_SCALE_FIELDS_H

#include <stdint.h>

#include "tensormorph/types.h"

typedef enum tm_scale_kind {
  TM_SCALE_F16,
  TM_SCALE_F32,
  TM_SCALE_E8M0,                /* one byte, 0xff is NaN; never zero */
  TM_SCALE_E4M3,                /* one byte each, NaN is 0x7f; what the sign bit says does not matter here */
  TM_SCALE_F16_APART            /* an f16 in the upper four bits of four little-endian 16-bit words, the lowest four first */
} tm_scale_kind;

typedef struct tm_scale_fields {
  uint32_t      format;
  tm_scale_kind kind;
  uint32_t      count;          /* fields in a block */
  uint32_t      offsets[4];     /* of each, in bytes */
} tm_scale_fields;

/* NULL: the format has no scales, or it is not known where. */
const tm_scale_fields *tm_scale_fields_find(uint32_t format);

/* A scale as the bits of an f16 (TM_SCALE_F16 and F16_APART), else as its own. */
uint32_t tm_scale_bits(const tm_scale_fields *fields, uint32_t field, const unsigned char *block);

#endif
