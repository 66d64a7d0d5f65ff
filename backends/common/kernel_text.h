/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_text.h - the kernels as text: each part once, with a #line in front of it; a program is several parts one after the
 * other.  kernel_embed.cmake writes the file that defines kernel_texts.
 */
#ifndef KERNEL_TEXT_H
#define KERNEL_TEXT_H

#include <stddef.h>

typedef struct kernel_text {
  const char          *name;    /* of the file, without a folder */
  const unsigned char *data;    /* not NUL-terminated */
  size_t               length;
} kernel_text;

extern const kernel_text kernel_texts[];
extern const size_t      kernel_text_count;

/* NULL if there is none of that name. */
const kernel_text *kernel_text_find(const char *name);

#endif
