/* SPDX-License-Identifier: Apache-2.0 */
/* printout.h - a report for people, and for programs. */
#ifndef CONFORMANCE_PRINTOUT_H
#define CONFORMANCE_PRINTOUT_H

#include "conformance/report.h"

/* What was checked and how. */
typedef struct printout_heading {
  const char *backend;
  const char *version;
  const char *origin;           /* "built-in" or the file */
  const char *device_name;
  const char *command;          /* that checks it again, without the rest of this */
  uint32_t    device_index;
  uint32_t    width;            /* of the terminal; 0: no limit */
  uint32_t    cases;
  uint64_t    seed;
  uint64_t    budget_ns;        /* 0: everything was to be tried */
  uint64_t    shared_budget_ns; /* of so many devices together, if it was cut for that; 0 sharers: it was not */
  uint32_t    sharer_count;
  bool        is_check;         /* only one check of manners was wanted */
} printout_heading;

/* A table of claims, what was not reached, then one line a failure with the command that repeats it. */
void printout_table(const report *r, const printout_heading *heading, FILE *to);
/* One element of the document's list of devices. */
void printout_json(const report *r, const printout_heading *heading, FILE *to);
void printout_json_text(const char *text, FILE *to);

#endif
