/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup_ledger.h - what is paid once (opening a device, a set-up that its operations share, packing constants), and how
 * much of it was earned so far.
 *
 * Whether to pay is the question whether to rent or to buy, with the classic answer: buy when the rent paid so far would
 * have bought it.  Each time a run goes elsewhere although a candidate would have been faster but for what it has to pay
 * first, the time lost is credited to that.  A candidate's price now is its time plus what is still to be earned.  So a
 * request that saves 1 ms does not pay 2 s, a request that saves 3 s does at once, and 2000 of the former do as well; over
 * any sequence of requests the time spent is at most twice that of who knew the sequence before.  [any thread]
 */
#ifndef TM_SCHEDULE_SETUP_LEDGER_H
#define TM_SCHEDULE_SETUP_LEDGER_H

#include "base/memory.h"
#include "base/thread.h"

typedef struct tm_setup_item {
  uint64_t key;
  uint64_t cost_ns;
} tm_setup_item;

typedef struct tm_setup_entry {
  uint64_t key;                 /* 0: free */
  uint64_t earned_ns;
  uint32_t is_paid;
  uint32_t padding;
} tm_setup_entry;

typedef struct tm_setup_ledger {
  tm_memory      *memory;
  tm_mutex        lock;
  tm_setup_entry *entries;      /* open addressing */
  uint32_t        count;
  _Atomic uint64_t kept_generation;     /* moves when kept constants were dropped: they are to be paid again */
} tm_setup_ledger;

tm_status tm_setup_ledger_init(tm_setup_ledger *ledger, tm_memory *memory);
void      tm_setup_ledger_deinit(tm_setup_ledger *ledger);

/* Mixes values into a key; never 0. */
uint64_t tm_setup_key_of(uint64_t first, uint64_t second, uint64_t third);

typedef struct tm_setup_due {
  uint64_t cost_ns;             /* of items not yet paid */
  uint64_t earned_ns;           /* of that, at most the cost */
} tm_setup_due;

tm_setup_due tm_setup_ledger_due(tm_setup_ledger *ledger, const tm_setup_item *items, uint32_t count);
/* Credits to the first items that are neither paid nor earned, as far as it goes. */
void tm_setup_ledger_credit(tm_setup_ledger *ledger, const tm_setup_item *items, uint32_t count, uint64_t ns);
void tm_setup_ledger_pay(tm_setup_ledger *ledger, const tm_setup_item *items, uint32_t count);

#endif
