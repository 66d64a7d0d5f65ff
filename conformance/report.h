/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what was claimed and how it fared, and what was not reached: the support table of a device. */
#ifndef CONFORMANCE_REPORT_H
#define CONFORMANCE_REPORT_H

#include <stdio.h>

#include "conformance/claim_trial.h"

#define REPORT_TEXT 720
#define REPORT_LEVEL_UNKNOWN 0xffu       /* of a case that ended its process: nothing was answered, or nothing is known of it */

/* One row: a combination of formats with one level and class. */
typedef struct report_claim {
  combination which;
  combination failed_which;             /* what was asked about when it failed; another one where changes led here */
  uint32_t    level;
  uint32_t    numerics;
  uint32_t    numerics_flags;
  uint32_t    growth;
  uint32_t    accumulator;
  uint32_t    case_count;
  uint32_t    failure_count;
  uint32_t    failed_case;              /* the first */
  double      numerics_bound;
  double      worst;
  char        failure[REPORT_TEXT];     /* the first: what was wrong, the case */
} report_claim;

/* A check of manners. */
typedef struct report_check {
  char name[40];
  bool failed;
  bool skipped;
  char text[REPORT_TEXT];               /* what was wrong, or why it was not tried */
  char note[160];                       /* what is no fault of the backend's, but worth knowing; "" if nothing */
} report_check;

typedef struct report {
  report_claim *claims;
  report_check *checks;
  uint32_t      count;
  uint32_t      capacity;
  uint32_t      check_count;
  uint32_t      check_capacity;
  uint64_t      question_count;
  uint64_t      refusal_count;
  uint64_t      unchecked_change_count;
  uint64_t      way_count;              /* refusals whose proposed changes were made, and the result run */
  uint64_t      withdrawn_count;        /* a yes that became a no when it was prepared, as the epoch moved */
  uint64_t      failure_count;          /* checks included */
  uint64_t      case_count;             /* that were accepted and run */
  uint32_t      claimed_count;          /* combinations that are claimed, or lead to something that is */
  uint32_t      reached_count;          /* of them, those of which at least one case ran */
  uint32_t      operation_count;        /* of which any combination is claimed */
  uint32_t      walked_count;           /* of them, those of which all sizes, ranks and layouts were asked about */
  uint32_t      step_count;             /* that were taken of their walks */
  uint32_t      all_step_count;         /* that there are */
  bool          out_of_time;
  char          unreached[240];         /* some of the others */
  char          never_accepted[240];    /* operations that it knows, by its reasons, and refused whenever it was asked */
  char          given_up[160];          /* why it ended early; "" if it did not */
  char          nothing_checked[160];   /* why no claim, or not the one check that was wanted; "" if some were */
} report;

/* The row of that combination, level and class, made if there is none; NULL without memory. */
report_claim *report_row(report *r, const combination *which, const tm_answer *answer);
/* Adds a row that another process filled. */
bool report_add(report *r, const report_claim *claim);
bool report_add_check(report *r, const report_check *check);
void report_free(report *r);

#endif
