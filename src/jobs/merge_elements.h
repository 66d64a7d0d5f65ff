/* SPDX-License-Identifier: Apache-2.0 */
/* merge_elements.h - elements of a tensor that lie in memory, as they are stored. */
#ifndef TM_JOBS_MERGE_ELEMENTS_H
#define TM_JOBS_MERGE_ELEMENTS_H

#include <stdint.h>

/* Whole blocks of a format that has a codec. */
typedef struct tm_merge_elements {
  uint32_t    format;
  const void *data;
} tm_merge_elements;

#endif
