/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_text.h"

#include <string.h>

const kernel_text *kernel_text_find(const char *name) {
  for (size_t i = 0; i < kernel_text_count; i++)
    if (strcmp(kernel_texts[i].name, name) == 0) return &kernel_texts[i];
  return NULL;
}
