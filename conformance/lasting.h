/* SPDX-License-Identifier: Apache-2.0 */
/* lasting.h - a yes holds as long as its epoch: the first one to each claim is remembered, and asked for again at the end. */
#ifndef CONFORMANCE_LASTING_H
#define CONFORMANCE_LASTING_H

#include "conformance/campaign_worker.h"

/* The number-th question about the entry's combination, and a yes to it; only the first one is kept, of each kind of host. */
void lasting_note(journal_entry *entry, const subject *s, uint32_t number, const tm_answer *answer);
/* Asks for each that this kind of host was given again, several at once, until they are through or it is end_ns (0: never). */
void lasting_check(const worker *w, subject *s, uint64_t end_ns);

#endif
