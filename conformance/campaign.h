/* SPDX-License-Identifier: Apache-2.0 */
/*
 * campaign.h - all claims of a backend put to the test.  What is claimed is found out by asking: every operation with every
 * combination of formats.  Trials run in children of this process, so that a crash or a hang is a failure of one case.
 */
#ifndef CONFORMANCE_CAMPAIGN_H
#define CONFORMANCE_CAMPAIGN_H

#include "conformance/report.h"
#include "conformance/subject.h"

typedef struct campaign {
  subject_options    subject;
  uint64_t           seed;
  uint32_t           cases;             /* a combination that is claimed */
  uint32_t           only_op;           /* TM_OP_NONE: all */
  const combination *only;              /* NULL: all */
  uint32_t           only_case_plus_one; /* 0: all */
  bool               stop_at_first;     /* failure of a combination */
} campaign;

typedef struct combination_list {
  combination *items;
  uint32_t     count;
  uint32_t     capacity;
} combination_list;

/* The combinations of formats that the operation takes at all.  False without memory. */
bool combination_list_make(const tm_op_row *row, combination_list *out_list);
void combination_list_free(combination_list *list);

/* Whether the subject opens, tried in a child; TM_ERROR_NO_DEVICE and the like. */
tm_status campaign_try(const campaign *c, char *text, uint64_t capacity);
/* Runs it; false when no child could be started.  The report is the caller's to free. */
bool campaign_run(const campaign *c, report *out_report);

#endif
