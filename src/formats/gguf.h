/* SPDX-License-Identifier: Apache-2.0 */
/* gguf.h - one GGUF file, and the set of which it may be a part. */
#ifndef TM_FORMATS_GGUF_H
#define TM_FORMATS_GGUF_H

#include "base/file.h"
#include "formats/archive_builder.h"

/* What a file says of the set that it is a part of. */
typedef struct tm_gguf_split {
  uint64_t number;              /* its own, from 0 */
  uint64_t count;               /* files of the set; 0 and 1: it is no part of any */
  uint64_t tensor_count;        /* of the whole set; 0: not said */
} tm_gguf_split;

/* Adds one file to the archive, which owns it afterwards, also when that fails. */
tm_status tm_gguf_read_file(tm_archive *archive, tm_file *file, tm_gguf_split *out_split, tm_error *error);

/* Makes an archive that holds one part of a set hold the whole set.   TM_ERROR_NOT_FOUND (parts are missing), TM_ERROR_CORRUPT
   (they do not belong together) and what reading a part can fail with */
tm_status tm_gguf_open_set(tm_archive *archive, const tm_gguf_split *split, tm_error *error);

#endif
