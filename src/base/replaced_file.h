/* SPDX-License-Identifier: Apache-2.0 */
/* replaced_file.h - a file of the user's that is written whole or not at all: one of that name stays until the new one is there. */
#ifndef TM_BASE_REPLACED_FILE_H
#define TM_BASE_REPLACED_FILE_H

#include <stdint.h>

#include "tensormorph/types.h"

/* Any thread; of several writers of one path the last one stays.  The file keeps its mode; a link stays, and what it leads to is
   replaced.   TM_ERROR_ARGUMENT (no path), TM_ERROR_IO: what is there is no regular file or may not be written to, or the system
   refuses; the message names where a link led */
tm_status tm_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error);

#endif
