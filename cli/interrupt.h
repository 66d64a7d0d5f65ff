/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - Ctrl-C and its kin (SIGINT, SIGTERM, SIGHUP) as something that is asked for, not something that
 * happens: while they are held they wait until polled, so there is no handler and no global state.  Threads inherit the
 * mask: what starts while they are held never takes one.  Signals that the parent process ignores stay ignored.
 */
#ifndef TM_CLI_INTERRUPT_H
#define TM_CLI_INTERRUPT_H

void tm_interrupt_hold(void);
/* One that arrived while held acts now, as it would have without. */
void tm_interrupt_release(void);
/* The number of a held signal that arrived, 0 if none did; takes it. */
int  tm_interrupt_poll(void);
/* Lets a signal that was taken act after all: ends the process, unless somebody handles it otherwise. */
void tm_interrupt_act(int signal_number);
/* 128 + signal. */
int  tm_interrupt_exit_code(int signal_number);

#endif
