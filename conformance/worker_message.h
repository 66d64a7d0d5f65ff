/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_message.h - a report on its way from a worker to who watches it.  A worker shares its memory with the backend under
 * test, which may have written anywhere: no pointer is sent, and nothing that arrives is believed before it is looked at.
 */
#ifndef CONFORMANCE_WORKER_MESSAGE_H
#define CONFORMANCE_WORKER_MESSAGE_H

#include "conformance/report.h"

typedef struct worker_message {
  uint64_t magic;
  uint32_t kind;                /* worker_message.c */
  uint32_t op;                  /* of a claim, and of the question that led to it */
  uint32_t failed_op;
  int32_t  sender;              /* the process that sent it */
  uint64_t question_count;
  uint64_t refusal_count;
  uint64_t unchecked_change_count;
  uint64_t way_count;
  uint64_t withdrawn_count;
  union {
    report_claim claim;
    report_check check;
  } of;
} worker_message;

/* The end of a pipe, and which file it is: the backend may have closed it, and opened something else. */
typedef struct worker_line {
  int      to;
  uint64_t device;
  uint64_t node;
} worker_line;

worker_line worker_line_of(int to);
/* Writes all of a report to the worker_line that `context` points at; false if it is not what it was. */
bool worker_message_send_report(void *context, const report *r);
/* Whether this process sent it: a backend may have made a copy of its process, which would go on with the same pipe. */
bool worker_message_is_from(const worker_message *m, int32_t process);
/* Adds it to the report; false if it is none. */
bool worker_message_take(report *r, worker_message *m);

#endif
