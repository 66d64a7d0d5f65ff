/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what was claimed and how it fared: the support table. */
#ifndef CONFORMANCE_REPORT_H
#define CONFORMANCE_REPORT_H

#include <stdio.h>

#include "conformance/trial.h"

#define REPORT_TEXT 560

/* One row: a combination of formats with one level and class. */
typedef struct report_claim {
  combination which;
  uint32_t    level;
  uint32_t    numerics;
  uint32_t    numerics_flags;
  uint32_t    growth;
  uint32_t    accumulator;
  uint32_t    case_count;
  uint32_t    failure_count;
  uint32_t    reserved;
  double      numerics_bound;
  double      worst;
  char        failure[REPORT_TEXT];     /* the first: the case, what was wrong, the seed */
} report_claim;

typedef struct report {
  report_claim *claims;
  uint32_t      count;
  uint32_t      capacity;
  uint64_t      question_count;
  uint64_t      refusal_count;
  uint64_t      unchecked_change_count;
  uint64_t      failure_count;
} report;

/* The row of that combination, level and class, made if there is none; NULL without memory. */
report_claim *report_row(report *r, const combination *which, const tm_answer *answer);
/* Adds a row that another process filled. */
bool report_add(report *r, const report_claim *claim);
void report_free(report *r);

void report_print(const report *r, const char *name, uint64_t seed, FILE *to);
void report_print_json(const report *r, const char *name, uint64_t seed, FILE *to);

#endif
