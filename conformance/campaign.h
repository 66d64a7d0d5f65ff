/* SPDX-License-Identifier: Apache-2.0 */
/*
 * campaign.h - all claims of one device put to the test.  What is claimed is found out by asking: every operation with every
 * combination of formats.  One worker process serves many cases; where it crashes or hangs, that case has failed and
 * another worker goes on behind it.  No two workers live at once, so a device that wants one process has one.
 */
#ifndef CONFORMANCE_CAMPAIGN_H
#define CONFORMANCE_CAMPAIGN_H

#include "conformance/manner.h"
#include "conformance/report.h"
#include "conformance/subject.h"

#define CAMPAIGN_MOST_DEVICES 256u      /* of one backend, as the host has it */

/* How far it is, for somebody who waits: `done` of `total` combinations and checks. */
typedef void (*campaign_progress_fn)(void *context, uint64_t done, uint64_t total, const char *what);

typedef struct campaign {
  subject_options    subject;
  uint64_t           seed;
  uint32_t           cases;             /* a combination that is claimed */
  uint32_t           only_op;           /* TM_OP_NONE: all */
  const combination *only;              /* NULL: all */
  const manner      *left_out;          /* this check is not made; NULL: all are */
  const manner      *only_manner;       /* this check and nothing else; NULL: all, unless an operation is named */
  uint32_t           only_case_plus_one; /* 0: all */
  bool               has_huge;          /* sizes of millions of elements, too */
  bool               stop_at_first;     /* failure of a combination */
  bool               in_this_process;   /* no worker: for a debugger */
  bool               claims_only;       /* no checks of manners */
  uint64_t           budget_ns;         /* stop when it is spent, the most telling cases first; 0: all */
  uint64_t           begin_ns;          /* when it began to be spent, as tm_now_ns tells; 0: with campaign_run */
  uint64_t           open_ns;           /* what opening the device takes, as far as it is known */
  uint64_t           case_deadline_ns;  /* 0: a minute */
  const char        *loading_fault;     /* what it did to the process when it was loaded; NULL or "": nothing */
  campaign_progress_fn progress;        /* may be NULL */
  void              *progress_context;
} campaign;

/* What opening the device said, tried in a worker. */
typedef struct campaign_opening {
  tm_status status;             /* TM_ERROR_NO_DEVICE and the like */
  uint32_t  device_count;       /* of the backend */
  uint64_t  open_ns;            /* how long it took */
  char      text[256];          /* why not */
  char      device_name[256];
} campaign_opening;

void campaign_open(const campaign *c, campaign_opening *out_opening);
/* Runs it; false when no worker could be started, or the device does not open any more.  The report is the caller's to free. */
bool campaign_run(const campaign *c, report *out_report);

#endif
