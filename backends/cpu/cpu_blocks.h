/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_blocks.h - block formats that are read and not written, 512 elements at a time, as f32.  The values are those of the reference, bit
 * for bit: products and differences are rounded where it rounds them.
 */
#ifndef CPU_BLOCKS_H
#define CPU_BLOCKS_H

#include "cpu_decode.h"

#define CPU_BLOCKS_RUN 512u     /* elements of one call: whole blocks of every format */

/* id, name, elements and bytes of a block, picoseconds an element */
#define CPU_READ_BLOCKS(X)                                                                                                        \
  X(Q4_1, q4_1, 32, 20, 140)   X(Q5_0, q5_0, 32, 22, 125)   X(Q5_1, q5_1, 32, 24, 130)   X(Q2_K, q2_k, 256, 84, 270)                 \
  X(Q3_K, q3_k, 256, 110, 325) X(Q4_K, q4_k, 256, 144, 200) X(Q5_K, q5_k, 256, 176, 290) X(Q6_K, q6_k, 256, 210, 305)                \
  X(IQ4_NL, iq4_nl, 32, 18, 90) X(IQ4_XS, iq4_xs, 256, 136, 110) X(MXFP4, mxfp4, 32, 17, 90) X(NVFP4, nvfp4, 64, 36, 140)

/* The second decodes any number of blocks, to any address. */
#define CPU_DECLARE_DECODER(id, name, elements, bytes, ps)          \
  void cpu_decode_##name(const unsigned char *data, float *to);     \
  void cpu_dequantize_##name(const unsigned char *from, unsigned char *to, uint64_t blocks, cpu_store_kind kind);
CPU_READ_BLOCKS(CPU_DECLARE_DECODER)
#undef CPU_DECLARE_DECODER

#endif
