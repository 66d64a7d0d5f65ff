/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_program.h"

#include <stdio.h>

#define COMMON "kernel_dialect.h", "kernel_parameters.h", "kernel_codec.inc", "kernel_walk.inc"

const kernel_program_info kernel_programs[KERNEL_PROGRAM_COUNT] = {
  [KERNEL_ELEMENTWISE]        = { "elementwise", 0, 0, { COMMON, "kernel_elementwise.inc" } },
  [KERNEL_ELEMENTWISE_F64]    = { "elementwise_f64", 1, 0, { COMMON, "kernel_elementwise.inc" } },
  [KERNEL_TRANSCENDENTAL]     = { "transcendental", 0, 0, { COMMON, "kernel_transcendental.inc" } },
  [KERNEL_TRANSCENDENTAL_F64] = { "transcendental_f64", 1, 0, { COMMON, "kernel_transcendental.inc" } },
  [KERNEL_MOVE]               = { "move", 0, 0, { COMMON, "kernel_move.inc" } },
  [KERNEL_CAST]               = { "cast", 0, 0, { COMMON, "kernel_block.inc", "kernel_cast.inc" } },
  [KERNEL_REDUCE]             = { "reduce", 0, 0, { COMMON, "kernel_exact_sum.inc", "kernel_reduce.inc" } },
  [KERNEL_REDUCE_F64]         = { "reduce_f64", 1, 0, { COMMON, "kernel_exact_sum.inc", "kernel_reduce.inc" } },
  [KERNEL_STATS]              = { "stats", 1, 0, { COMMON, "kernel_block.inc", "kernel_exact_sum.inc", "kernel_stats.inc",
                                                 "kernel_comparison.inc" } },
  [KERNEL_NORMALIZE]          = { "normalize", 0, 0, { COMMON, "kernel_normalize.inc" } },
  [KERNEL_NORMALIZE_F64]      = { "normalize_f64", 1, 0, { COMMON, "kernel_normalize.inc" } },
  [KERNEL_MATMUL]             = { "matmul", 0, 0, { COMMON, "kernel_block.inc", "kernel_matmul.inc" } },
  [KERNEL_MATMUL_F64]         = { "matmul_f64", 1, 0, { COMMON, "kernel_block.inc", "kernel_matmul.inc" } },
  [KERNEL_MATMUL_INTEGER]     = { "matmul_integer", 0, 1, { COMMON, "kernel_block.inc", "kernel_matmul.inc" } },
  [KERNEL_TOKENS]             = { "tokens", 0, 0, { COMMON, "kernel_tokens.inc" } },
  [KERNEL_TOKENS_F64]         = { "tokens_f64", 1, 0, { COMMON, "kernel_tokens.inc" } },
  [KERNEL_MERGE]              = { "merge", 1, 0, { COMMON, "kernel_block.inc", "kernel_merge.inc" } },
};

void kernel_options_print(kernel_program program, u32 has_f64, const kernel_special *special, char *out_text) {
  const kernel_program_info *info = &kernel_programs[program];
  int length = snprintf(out_text, KERNEL_OPTIONS_LENGTH, "-DHAS_F64=%u -DREAL_IS_F64=%u -DPRODUCT_IS_INTEGER=%u",
                              (unsigned)has_f64, (unsigned)info->real_is_f64, (unsigned)info->product_is_integer);
  if (special == NULL || length < 0) return;
  const u32 *formats = special->parameters->formats;
  length += snprintf(out_text + length, KERNEL_OPTIONS_LENGTH - (size_t)length,
                     " -DKERNEL_OP=%uu -DKERNEL_FORMAT_0=%uu -DKERNEL_FORMAT_1=%uu -DKERNEL_FORMAT_2=%uu -DKERNEL_FORMAT_3=%uu"
                     " -DKERNEL_ONLY",
                     (unsigned)special->parameters->op, (unsigned)formats[0], (unsigned)formats[1], (unsigned)formats[2],
                     (unsigned)formats[3]);
  for (u32 i = 0; i < special->count && length < KERNEL_OPTIONS_LENGTH; i++)
    length += snprintf(out_text + length, KERNEL_OPTIONS_LENGTH - (size_t)length, " -DKERNEL_ONLY_%s", special->kernels[i]);
}
