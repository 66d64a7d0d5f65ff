/* SPDX-License-Identifier: Apache-2.0 */
/* replaced_file.h - a file of the user's that is written whole or not at all: one of that name stays until the new one is there. */
#ifndef TM_BASE_REPLACED_FILE_H
#define TM_BASE_REPLACED_FILE_H

#include <stdint.h>

#include "tensormorph/types.h"

/* Any thread; of several writers of one path the last one stays.  The file keeps its mode and, if it can be, its owner.  A link
   stays, and what it leads to is replaced; a stranger's link in a folder of everybody's is refused.   TM_ERROR_ARGUMENT (no path),
   TM_ERROR_IO: what is there is no regular file or may not be written to, or the system refuses; where a link led is said */
tm_status tm_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error);

#endif
