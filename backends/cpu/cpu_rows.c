/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kernel families: one declaration and one entry each. */
#include "cpu_kernel.h"

#if defined(__x86_64__)
extern const cpu_row_table cpu_rows_stats;
#endif

const cpu_row_table *const cpu_row_tables[] = {
#if defined(__x86_64__)
  &cpu_rows_stats,
#endif
  NULL,
};
