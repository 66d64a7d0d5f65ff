/* SPDX-License-Identifier: Apache-2.0 */
/* process_state.h - what belongs to the process and is nobody's to change. */
#ifndef CONFORMANCE_PROCESS_STATE_H
#define CONFORMANCE_PROCESS_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define PROCESS_SIGNALS 65

/* What arithmetic does: which way it rounds, what it makes of subnormal numbers, and whether it traps. */
typedef struct float_habits {
  int32_t rounding;
  int32_t traps;
  float   made_subnormal;
  float   read_subnormal;
  uint32_t control;             /* modes and masks of the vector unit, where it has a word of its own */
} float_habits;

typedef struct process_state {
  struct sigaction actions[PROCESS_SIGNALS];
  sigset_t mask;
  uint64_t environment;         /* a hash of names and values, but for what is excused */
  uint64_t streams;             /* a hash of which files 0, 1 and 2 are, how they are open, and how far 0 was read */
  uint64_t timers;              /* likewise, of which are set */
  uint64_t limits;
  uint64_t affinity;
  uint64_t pending;             /* signals */
  uint64_t priority;
  uint64_t may_be_dumped;       /* whether a crash leaves a core file, and a debugger may look */
  char     thread_name[16];
  char     folder[4096];
  char     locale[256];
  uint64_t printed_bytes;       /* on the standard streams, where they are files; no part of a difference */
  uint32_t file_mask;
  uint32_t descriptor_count;
  uint32_t thread_count;
  float_habits habits;
} process_state;

/* Entries of the environment, "NAME=VALUE", that are not looked at. */
typedef bool (*process_excuse_fn)(const char *entry);
/* `is_excused` may be NULL. */
void process_state_read(process_state *out_state, process_excuse_fn is_excused);
typedef void (*process_difference_fn)(void *context, const char *what);
/* Visits what differs, in words.  Descriptors and threads are not looked at. */
void process_state_compare(const process_state *before, const process_state *after, process_difference_fn visit, void *context);
/* Threads that are ending get a moment to do so. */
uint32_t process_thread_count(uint32_t expected);
uint32_t process_descriptor_count(void);
/* A joined thread (tm_thread_id) is counted for a moment longer; not any more after this. */
void process_await_thread(uint64_t id);

#endif
