/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what the probe is about to do, told before it is done: whoever started it reads from the last line what a
 * plugin was doing when the process ended.  Every call into the plugin is told by a table between it and the host.
 */
#ifndef TM_LIBEXEC_JOURNAL_H
#define TM_LIBEXEC_JOURNAL_H

#include "base/fields.h"
#include "plugin/inventory.h"

/* Takes standard output for itself: what the plugin prints goes nowhere. */
void journal_open(void);
void journal_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What the calls that follow are about ("matmul f32"), or "".  Of questions about the same one in a while is told. */
void journal_subject(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes fields as they are. */
void journal_write(const tm_field_writer *writer);
/* Whether there is no room for many more steps: whoever listens takes what a record may have (TM_RECORD_BYTES). */
bool journal_is_full(void);
/* Nothing more is told: what comes now is the end of the process. */
void journal_end(void);

/* Whether a call came back in a copy of the process as well (fork), which ended as soon as it had something to tell. */
bool journal_was_copied(void);
/* Whether a call came back with another rounding or with subnormals flushed. */
bool journal_saw_float_mode_changed(void);
/* What half of its questions took at most, one at a time; 0 where there were too few to tell. */
uint64_t journal_question_ns(void);

/* A tm_interpose_fn. */
void journal_interpose(void *context, tm_accelerator_backend_plugin *table);

#endif
