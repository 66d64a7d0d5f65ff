/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_features.h"

#include "cpu_kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Not every compiler's builtin knows this feature by name; AVX2, asked for as well, vouches for the register state. */
static int has_f16c(void) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
}

uint32_t cpu_features_detect(void) {
  __builtin_cpu_init();
  const int all = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const int wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
  return all ? CPU_ISA_AVX2 | (wide ? CPU_ISA_AVX512 : 0) : 0;
}
#else
uint32_t cpu_features_detect(void) { return 0; }
#endif
