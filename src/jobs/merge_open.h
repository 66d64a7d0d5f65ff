/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_open.h - a tensor that is being merged: passes over its elements, one after the other, each cut into pieces of a stream.
 *
 *     slerp   an arc pass (both tensors' lengths and angle), a second one where squares left the range (merge_arc.h), then the
 *             computing one
 *     ties    for each trimmed model two passes over its differences (upper, then lower bits of the threshold), then the
 *             computing one; of small tensors only this (merge_trim.h)
 *     others  the computing pass
 */
#ifndef TM_JOBS_MERGE_OPEN_H
#define TM_JOBS_MERGE_OPEN_H

#include <stdatomic.h>

#include "execute/work_stream.h"
#include "jobs/merge_arc.h"
#include "jobs/merge_plan.h"

typedef enum tm_merge_pass {
  TM_MERGE_PASS_NONE, TM_MERGE_PASS_ARC, TM_MERGE_PASS_UPPER, TM_MERGE_PASS_LOWER, TM_MERGE_PASS_COMPUTE
} tm_merge_pass;

#define TM_MERGE_MOST_SETTINGS (1u + TM_DARE_WORDS * TM_MERGE_MOST_MODELS)

typedef struct tm_merge_open {
  const tm_merge_settings *settings;
  const tm_merge_item     *item;
  uint64_t                 index;       /* of the item, which is that of the written tensor */
  tm_merge_pass            pass;
  uint32_t                 looked_at;   /* the input whose differences this pass is about */
  uint64_t                 next_element;        /* that no piece has */
  uint64_t                 done_count;          /* elements that pieces have brought in */
  uint32_t                 number_count;        /* settings of the operation */
  uint64_t                 numbers[TM_MERGE_MOST_SETTINGS];
  bool                     keeps_equal;         /* what all inputs have alike is the result (merge_equals.h) */
  uint64_t                 above_count;         /* differences of the threshold's size or more that are still to be found */
  uint32_t                 upper;
  uint64_t                *words;       /* what looking found: TM_MAGNITUDE_BINS or TM_COMPARISON_WORDS */
  uint64_t                 change[TM_COMPARISON_WORDS];         /* without the leading model only what is not finite is counted */
  uint64_t                 loss[TM_COMPARISON_WORDS];
  uint64_t                 broken_count;        /* elements that are finite in the leading checkpoint, and not here */
  bool                     is_scaled;           /* the arc pass is the second one */
  tm_merge_arc_shift       shifts[2];           /* then, of both inputs */
  tm_merge_arc             arc;         /* of slerp, when weights_text is there */
  const char              *weights_text;        /* NULL: the plan's */
  char                     text[96];
  _Atomic bool             is_done;     /* all passes */
} tm_merge_open;

/* words: room as above, NULL where the item has nothing to look at. */
void tm_merge_open_begin(tm_merge_open *open, const tm_merge_settings *settings, const tm_merge_item *item, uint64_t index,
                         uint64_t *words);
/* Whether this item's passes look at it before. */
bool tm_merge_open_looks(const tm_merge_item *item);

/* Whether the pass has elements that no piece has yet. */
bool tm_merge_open_has_more(const tm_merge_open *open);
/* The next piece, of at most so many units.   As tm_operand_contiguous */
tm_status tm_merge_open_next(tm_merge_open *open, uint64_t most_units, tm_work_stream_piece *out_piece, tm_error *error);
/* A piece ran; with the last one of a pass the next pass begins.  result: its words, where it looked. */
void tm_merge_open_done(tm_merge_open *open, const tm_work_stream_piece *piece, const uint64_t *result);

/* ---- pieces ---- */

uint64_t tm_merge_piece_elements(const tm_work_stream_piece *piece);
/* Elements of the rest's source that lie before the piece, in the same unit: what comes first of the rest is read and hashed from
   the beginning of a unit, so that hashes do not tell where it begins. */
uint64_t tm_merge_piece_lead_in(const tm_merge_open *open, const tm_work_stream_piece *piece);
/* What input `input` of the operation is; NULL: its settings. */
const tm_merge_input *tm_merge_piece_input(const tm_merge_open *open, const tm_work_stream_piece *piece, uint32_t input);
/* The format that the inputs are copied into before they are compared; TM_FORMAT_NONE: they are used as they are. */
uint32_t tm_merge_piece_copies(const tm_merge_open *open, const tm_work_stream_piece *piece);
bool tm_merge_piece_computes(const tm_work_stream_piece *piece);

#endif
