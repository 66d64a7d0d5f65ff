/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.h - an opened archive as the application sees it. */
#ifndef TM_API_CHECKPOINT_H
#define TM_API_CHECKPOINT_H

#include "api/context.h"
#include "base/thread.h"
#include "formats/archive.h"

struct tm_checkpoint {
  tm_context  *context;
  tm_archive  *archive;
  char        *path;
  uint64_t     path_bytes;
  uint64_t     file_bytes;
  tm_mutex     lock;                    /* of what follows */
  tm_arena     texts;                   /* metadata in printed form, made when first asked for */
  const char **printed_types;
  const char **printed_values;
};

/* How checkpoints of a context are opened; flags: TM_CHECKPOINT_*. */
tm_archive_options tm_checkpoint_archive_options(const tm_context *context, uint32_t flags);

#endif
