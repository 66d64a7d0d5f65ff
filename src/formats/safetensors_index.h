/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_index.h - the set that a file is a part of, found through an index beside the file. */
#ifndef TM_FORMATS_SAFETENSORS_INDEX_H
#define TM_FORMATS_SAFETENSORS_INDEX_H

#include <stdbool.h>

#include "formats/archive_builder.h"

/* If an index in the folder of `file` names it, fills the archive with all files of the index.  Where there is such an index, but
   the set cannot be opened (parts are missing, say), a note says why and the archive holds no file.  Does not take `file`.
   TM_ERROR_NO_MEMORY */
tm_status tm_safetensors_open_set_of(tm_archive *archive, const tm_file *file, bool *out_is_open, tm_error *error);

#endif
