/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_recovery.h - what killed writers of a checkpoint left (checkpoint_writer.h): to remove, or to put in its place. */
#ifndef TM_FORMATS_CHECKPOINT_RECOVERY_H
#define TM_FORMATS_CHECKPOINT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "formats/standing_files.h"
#include "formats/write_target_path.h"
#include "tensormorph/types.h"

/* Of the single file and of the set of that name, but for what has the caller's own digits (or NULL).  Tells how many were put in
   their place.   As tm_pending_recover */
tm_status tm_checkpoint_clean_up(tm_memory *memory, const tm_write_target_path *target, const tm_standing_files *standing,
                                 const char *own_id, uint64_t *out_completed_count, tm_error *error);

/* Cleans up what killed writers of `path` left.   As tm_pending_recover; counts may be NULL */
tm_status tm_checkpoint_recover(tm_memory *memory, const char *path, uint64_t *out_removed_count, uint64_t *out_completed_count,
                                tm_error *error);
/* Whether what `path` means (an index, NAME.safetensors, a shard of it, or a folder) was complete but not all in its place when its writer
   ended. */
#define TM_CHECKPOINT_INTERRUPTED "a complete checkpoint was being put in its place here; if its writer has ended, writing it again " \
                                  "or asking for its recovery completes it"
bool tm_checkpoint_is_interrupted(tm_memory *memory, const char *path);

#endif
