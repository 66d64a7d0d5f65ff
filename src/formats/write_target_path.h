/* SPDX-License-Identifier: Apache-2.0 */
/* write_target_path.h - the path under which a checkpoint is to be written, and the names that follow from it. */
#ifndef TM_FORMATS_WRITE_TARGET_PATH_H
#define TM_FORMATS_WRITE_TARGET_PATH_H

#include <stdbool.h>

#include "base/arena.h"
#include "tensormorph/types.h"

typedef struct tm_write_target_path {
  const char *label;            /* for messages */
  const char *folder;           /* "": the working directory */
  const char *name;             /* NAME.safetensors */
  const char *index;            /* NAME.safetensors.index.json; NULL where that is no question */
  bool        is_link;
  const char *linked_folder;    /* where the link leads */
  const char *linked_name;
} tm_write_target_path;

/* `extension` is that of the format; NULL: any, and the path may also be that of an index.  Everything lies in `arena`.
   TM_ERROR_ARGUMENT (no path, a folder, the name of an index or of another format), TM_ERROR_IO (a link that cannot be followed),
   TM_ERROR_NO_MEMORY */
tm_status tm_write_target_path_find(tm_arena *arena, const char *path, const char *extension, tm_write_target_path *out_target,
                                    tm_error *error);

#endif
