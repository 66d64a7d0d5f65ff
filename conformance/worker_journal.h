/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_journal.h - what the worker notes down before it does anything, in memory that outlives it: where it is, and what became
 * of each combination of formats.
 */
#ifndef CONFORMANCE_WORKER_JOURNAL_H
#define CONFORMANCE_WORKER_JOURNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "conformance/last_call.h"

#define JOURNAL_TEXT 256

typedef enum journal_state {
  JOURNAL_UNKNOWN,              /* nobody asked yet */
  JOURNAL_REFUSED,
  JOURNAL_LEADS_ON,             /* refused, with changes that make something acceptable of it */
  JOURNAL_CLAIMED
} journal_state;

/* How a worker ended that came to its own end. */
typedef enum journal_ending {
  JOURNAL_BROKE_OFF,            /* it did not */
  JOURNAL_IS_THROUGH,
  JOURNAL_HAD_NO_DEVICE,
  JOURNAL_CUT_OFF               /* what it found out does not reach anybody: its descriptor is closed, or another file */
} journal_ending;

/* A yes that was given. */
typedef struct journal_promise {
  uint32_t number_plus_one;     /* of the question; 0: none yet */
  uint32_t reserved;
  uint64_t epoch;               /* that it was given for */
  uint64_t hash;                /* of the answer */
} journal_promise;

/* Of one combination. */
typedef struct journal_entry {
  uint32_t state;               /* journal_state */
  uint32_t case_count;          /* accepted ones that were run */
  uint32_t has_begun;           /* with what is tried once only, of its first accepted case */
  uint32_t is_known;            /* the operation, by the reasons of a refusal */
  uint32_t is_near;             /* and the formats as well */
  uint32_t walked;              /* steps that the first combination of the operation was walked, noted where its entries begin */
  journal_promise promises[2];  /* the first, with ranges one after the other, and spread over threads */
  uint64_t setup_key;
  uint64_t setup_ns;
} journal_entry;

typedef struct journal {
  _Atomic uint64_t beat;        /* moves with each case */
  _Atomic uint32_t item;        /* of the phase; see campaign.c */
  _Atomic uint32_t combination; /* index; UINT32_MAX: none */
  _Atomic uint32_t number;      /* of the case */
  _Atomic uint32_t is_open;     /* the device */
  _Atomic int32_t  open_status;
  _Atomic uint32_t ending;      /* journal_ending: what the worker says of itself; an exit code may be anybody's */
  last_call        calls;
  uint64_t         open_ns;             /* of the last opening */
  uint64_t         description;         /* of the device, as the first worker that opened it was told: its hash; 0: none was */
  uint32_t         device_count;
  uint32_t         entry_count;
  char             text[JOURNAL_TEXT];  /* what the backend said when it could not be opened */
  char             device_name[JOURNAL_TEXT];
  journal_entry    entries[];
} journal;

/* NULL without memory. */
journal *journal_create(uint32_t entry_count);
void     journal_destroy(journal *j);

/* Before a case; ends a copy of the process that works here. */
void journal_note(journal *j, uint32_t item, uint32_t combination, uint32_t number);

#endif
