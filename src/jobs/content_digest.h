/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_digest.h - what a tensor holds, in a few words: of a sample, or of all of it; as the bytes that are stored, or as the
 * values that they decode to, which are the same in every format that holds them exactly.
 */
#ifndef TM_JOBS_CONTENT_DIGEST_H
#define TM_JOBS_CONTENT_DIGEST_H

#include "base/content_hash.h"
#include "base/pool.h"
#include "execute/scratch.h"
#include "formats/archive.h"

typedef enum tm_content_view {
  TM_CONTENT_BYTES,             /* of a tensor whose size is known */
  TM_CONTENT_VALUES,            /* of one with arithmetic */
  TM_CONTENT_TURNED             /* values, with the axes in reverse order (tm_transposed_can_flip); not sampled */
} tm_content_view;

typedef struct tm_content_digest {
  tm_content_hash hash;
  bool            is_constant;  /* one block, or value, over and over */
} tm_content_digest;

/* Of about a kilobyte of it, or 256 values, from the middle: ends are padded more often.  The tensor's size is known; of values it
   has elements, which are rounded to a float of at most 16 bits before, or to none (TM_FORMAT_NONE).   As tm_archive_read */
tm_status tm_content_sample(const tm_archive *archive, uint64_t tensor, tm_content_view view, uint32_t rounded_to,
                            tm_content_digest *out_digest, tm_error *error);

/* What digests share: belongs to one thread. */
typedef struct tm_content_digester {
  const tm_memory        *memory;
  tm_pool                *pool;
  tm_scratch             *scratch;
  tm_scratch_block        room;         /* for bytes that are not mapped in that order */
  uint32_t                rounded_to;   /* as in tm_content_sample */
  const _Atomic uint32_t *cancelled;
  void                  (*advanced)(void *context, uint64_t bytes);     /* so many more were read of all of a tensor; NULL: nobody asks */
  void                   *advanced_context;
} tm_content_digester;

void tm_content_digester_deinit(tm_content_digester *digester);
/* Of all of it.   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED, TM_ERROR_CHANGED, as tm_archive_read */
tm_status tm_content_digest_take(tm_content_digester *digester, const tm_archive *archive, uint64_t tensor, tm_content_view view,
                                 tm_content_digest *out_digest, tm_error *error);

#endif
