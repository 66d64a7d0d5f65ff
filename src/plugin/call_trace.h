/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_trace.h - every call into a backend as a line of the application's log: when, on which thread, whom, what with, how
 * it ended and how long it took.  A table that logs is put around the backend's own; where nobody asks, nothing is.
 */
#ifndef TM_PLUGIN_CALL_TRACE_H
#define TM_PLUGIN_CALL_TRACE_H

#include "plugin/inventory.h"

/* Whether TENSORMORPH_TRACE is "calls". */
bool tm_call_trace_is_wanted(void);

/* A span of a backend's own, as two lines between those of its calls; 0, and no lines, where nothing is logged. */
uint64_t tm_call_trace_begin_span(const tm_backend_slot *slot, const char *name);
void     tm_call_trace_end_span(const tm_backend_slot *slot, uint64_t span);

/* Wraps slot->table, before init is called.  What is behind handles is the trace's own from then on.   TM_ERROR_NO_MEMORY */
tm_status tm_call_trace_install(tm_backend_slot *slot, tm_error *error);

#endif
