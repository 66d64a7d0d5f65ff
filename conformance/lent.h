/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lent.h - what the backend is given for the time of a call is a copy in pages that nobody can reach once the call is over:
 * who keeps a pointer to a struct of the caller's, and looks there later, crashes.
 */
#ifndef CONFORMANCE_LENT_H
#define CONFORMANCE_LENT_H

#include "conformance/last_call.h"
#include "tensormorph/plugin.h"

/* Puts functions into *out_table that lend copies to those of `own` that take structs, whichever table lent_through names. */
void lent_wrap(const tm_accelerator_backend_plugin *own, tm_accelerator_backend_plugin *out_table);
/* From now on this thread's calls of such functions reach this table, which outlives them. */
void lent_through(const tm_accelerator_backend_plugin *own);
/* Likewise of every thread that names none. */
void lent_everywhere(const tm_accelerator_backend_plugin *own);
/* Before a worker begins: what is touched out of its time is noted there as the process ends for it. */
void lent_watch(last_call *calls);

#endif
