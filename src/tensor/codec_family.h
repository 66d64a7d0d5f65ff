/* SPDX-License-Identifier: Apache-2.0 */
/* codec_family.h - the rows that each format family hands to codec.c. */
#ifndef TM_TENSOR_CODEC_FAMILY_H
#define TM_TENSOR_CODEC_FAMILY_H

#include "tensor/codec.h"

typedef struct tm_codec_family {
  const tm_codec *codecs;
  uint32_t        count;
} tm_codec_family;

extern const tm_codec_family tm_codec_family_float;
extern const tm_codec_family tm_codec_family_integer;
extern const tm_codec_family tm_codec_family_k;
extern const tm_codec_family tm_codec_family_legacy;
extern const tm_codec_family tm_codec_family_nonlinear;
extern const tm_codec_family tm_codec_family_q4_0;
extern const tm_codec_family tm_codec_family_q8_0;
extern const tm_codec_family tm_codec_family_ternary;

#endif
