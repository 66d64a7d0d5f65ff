/* SPDX-License-Identifier: Apache-2.0 */
/* merge_item.h - one tensor of a merge: what it is made of, and what does not match. */
#ifndef TM_JOBS_MERGE_ITEM_H
#define TM_JOBS_MERGE_ITEM_H

#include "jobs/merge_settings.h"
#include "tensor/format.h"

typedef enum tm_merge_action {
  TM_MERGE_ACTION_COMPUTE, TM_MERGE_ACTION_COPY, TM_MERGE_ACTION_SKIP, TM_MERGE_ACTION_REFUSE
} tm_merge_action;

typedef enum tm_merge_mismatch {
  TM_MERGE_MISMATCH_NONE, TM_MERGE_MISMATCH_MISSING, TM_MERGE_MISMATCH_ROWS, TM_MERGE_MISMATCH_SHAPE, TM_MERGE_MISMATCH_TYPE,
  TM_MERGE_MISMATCH_FORMAT              /* of the result: the file cannot hold it */
} tm_merge_mismatch;

typedef struct tm_merge_input {
  uint32_t source;
  uint32_t reserved;
  uint64_t tensor;                      /* in the source's archive */
  double   weight;                      /* linear: the factor; slerp: not looked at; else what goes with the difference */
  double   density;
} tm_merge_input;

/* What slerp found on its way. */
typedef struct tm_merge_arc {
  double factors[2];
  double angle;                         /* NaN: mixed linearly */
} tm_merge_arc;

typedef struct tm_merge_item {
  tm_string             name;
  const tm_merge_input *inputs;         /* that are read: a base first, then models in the order of the arithmetic; of a copy one */
  const tm_merge_input *rest;           /* what elements from common_count on are taken from; NULL: there are none */
  uint32_t              input_count;
  uint32_t              method;         /* TM_MERGE_*: linear also where one input is left */
  uint8_t               action;         /* tm_merge_action */
  uint8_t               mismatch;       /* tm_merge_mismatch */
  uint8_t               is_wide;        /* an input has values of more than 24 bits: factors are on no grid (merge_weights.h) */
  uint8_t               is_mean;        /* factors sum to 1, and equal elements may need merge_equals.h to stay what they are */
  uint32_t              format;         /* of the result; TM_FORMAT_NONE: what type_name says */
  const char           *type_name;
  const uint64_t       *dims;
  uint64_t              element_count;
  uint64_t              common_count;
  uint64_t              bytes;          /* of the result */
  uint32_t              rank;
  uint32_t              has_own_type;   /* type_name is what safetensors calls it */
  bool                  is_nothing;     /* all weights are 0: it is zeros, whatever the inputs hold */
  double                t, scale;
  const tm_merge_arc   *arc;            /* of slerp, when its tensor is written; the plan's lock guards it */
  const char           *message;        /* what does not match and what is done; NULL: nothing */
  const char           *models_text, *weights_text;     /* made when first asked for */
} tm_merge_item;

/* The tensor of that name, which at least one source has.  What rules say is for all of `settings`; memory of the item is the
   arena's.   TM_ERROR_ARGUMENT (weights whose sum is nothing), TM_ERROR_NO_MEMORY, as tm_archive_read */
tm_status tm_merge_item_make(const tm_merge_settings *settings, tm_arena *arena, tm_string name, tm_merge_item *out_item,
                             tm_error *error);

#endif
