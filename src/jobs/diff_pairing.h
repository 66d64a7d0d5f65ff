/* SPDX-License-Identifier: Apache-2.0 */
/* diff_pairing.h - who is compared with whom, by name; and who is left over. */
#ifndef TM_JOBS_DIFF_PAIRING_H
#define TM_JOBS_DIFF_PAIRING_H

#include "jobs/diff_pair.h"
#include "jobs/selection.h"

/* What is known of one tensor. */
#define TM_DIFF_SELECTED 0x1u           /* the patterns choose it */
#define TM_DIFF_MATCHED  0x2u           /* it has a counterpart */
#define TM_DIFF_EXCLUDED 0x4u           /* the patterns leave it out, and with it its counterpart of another name */
#define TM_DIFF_UNEQUAL  0x8u           /* which has its name, but does not hold the same */

/* Of one that may still find its counterpart: when it was looked for, there were several. */
#define TM_DIFF_AMBIGUOUS 0x10u

typedef struct tm_diff_side {
  const tm_archive *archive;
  uint64_t          count;              /* of tensors */
  uint8_t          *marks;              /* by tensor: TM_DIFF_SELECTED, TM_DIFF_* */
  uint64_t         *searched_bytes;     /* by tensor: counted as done while its counterpart was looked for */
} tm_diff_side;

typedef struct tm_diff_pairs {
  tm_memory    *memory;
  tm_diff_pair *items;
  uint64_t      count;
  uint64_t      capacity;
} tm_diff_pairs;

typedef struct tm_diff_pairing {
  tm_memory   *memory;
  tm_job      *job;
  tm_diff_side sides[2];
} tm_diff_pairing;

/* sources: a and b; rules: what was selected by.   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED.  Whatever comes back, it must be deinitialised. */
tm_status tm_diff_pairing_init(tm_diff_pairing *pairing, tm_memory *memory, tm_job *job, const tm_job_source *sources,
                               const tm_selection *selection, const tm_selection_rules *rules, tm_error *error);
void      tm_diff_pairing_deinit(tm_diff_pairing *pairing);

static inline bool tm_diff_pairing_has(const tm_diff_pairing *pairing, uint32_t side, uint64_t tensor, uint8_t mark) {
  return (pairing->sides[side].marks[tensor] & mark) != 0;
}
static inline bool tm_diff_pairing_is_left(const tm_diff_pairing *pairing, uint32_t side, uint64_t tensor) {
  return !tm_diff_pairing_has(pairing, side, tensor, TM_DIFF_MATCHED);
}

/* Whether the job is done with a tensor when it has a counterpart, and not before. */
bool tm_diff_pairing_counts(const tm_diff_pairing *pairing, uint32_t side, uint64_t tensor);
/* Both have a counterpart from now on. */
void tm_diff_pairing_mark(tm_diff_pairing *pairing, const tm_diff_pair *pair);
/* It stays without a counterpart for now, as there are several. */
void tm_diff_pairing_mark_ambiguous(const tm_diff_pairing *pairing, uint32_t side, uint64_t tensor);
/* Of those, the ones that have none to this day. */
uint64_t tm_diff_pairing_ambiguous_count(const tm_diff_pairing *pairing);
/* What they hold has turned out not to be the same. */
void tm_diff_pairing_mark_unequal(tm_diff_pairing *pairing, const tm_diff_pair *pair);
/* Adds a pair; which sides count, and whether it is hidden, follows from what is known of the tensors.   TM_ERROR_NO_MEMORY */
tm_status tm_diff_pairing_add(const tm_diff_pairing *pairing, tm_diff_pairs *pairs, tm_diff_pair pair, tm_error *error);

/* The selected tensors of one name, in a's order, marked as matched.   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED */
tm_status tm_diff_pairing_by_name(tm_diff_pairing *pairing, tm_diff_pairs *pairs, tm_error *error);
/* The selected tensors without a counterpart: a's, then b's.   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED */
tm_status tm_diff_pairing_rest(const tm_diff_pairing *pairing, tm_diff_pairs *pairs, tm_error *error);

/* Adds a pair as it is.   TM_ERROR_NO_MEMORY */
tm_status tm_diff_pairs_append(tm_diff_pairs *pairs, tm_diff_pair pair, tm_error *error);
void tm_diff_pairs_init(tm_diff_pairs *pairs, tm_memory *memory);
void tm_diff_pairs_deinit(tm_diff_pairs *pairs);

#endif
