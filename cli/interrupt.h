/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - Ctrl-C and its kin (SIGINT, SIGTERM, SIGHUP) while a command runs.  A thread of its own takes them, and ends
 * the process in such a way that the next one does not take it for a crash; a command that has an answer of its own pauses
 * that and polls, so there is no handler and no global state.  Threads inherit the mask: what starts meanwhile never takes
 * one.  Signals that the parent process ignores stay ignored.
 */
#ifndef TM_CLI_INTERRUPT_H
#define TM_CLI_INTERRUPT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

typedef struct tm_interrupt_watch {
  pthread_t thread;
  bool      is_running;
  /* What is to be said before the process ends, on the watch's own thread while the command goes on; NULL: nothing.  Changed during
     a pause only. */
  void    (*farewell)(void *context);
  void     *farewell_context;
} tm_interrupt_watch;

/* Also after a pause.  Without a thread for it signals act as they would have. */
void tm_interrupt_watch_begin(tm_interrupt_watch *watch);
/* From now on signals wait until they are polled. */
void tm_interrupt_watch_pause(tm_interrupt_watch *watch);
/* One that arrived during a pause acts now, as it would have without. */
void tm_interrupt_watch_end(tm_interrupt_watch *watch);

/* For a process to be started: takes those signals out of the set. */
void tm_interrupt_unblock(sigset_t *set);
/* The number of a held signal that arrived, 0 if none did; takes it. */
int  tm_interrupt_poll(void);
/* Lets a signal that was taken act after all: ends the process, unless somebody handles it otherwise. */
void tm_interrupt_act(int signal_number);
/* 128 + signal. */
int  tm_interrupt_exit_code(int signal_number);

#endif
