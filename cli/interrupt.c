/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preferences.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

static void wanted_signals(sigset_t *out_set) {
  sigemptyset(out_set);
  for (size_t i = 0; i < SIGNAL_COUNT; i++) {
    struct sigaction action;
    if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(out_set, signals[i]);
  }
}

static void change_mask(int how) {
  sigset_t set;
  wanted_signals(&set);
  pthread_sigmask(how, &set, NULL);
}

/* ---- marks of what is under way: see state_folder in tensormorph.h ---- */

static void remove_own(DIR *folder) {
  char prefix[64];
  const int length = snprintf(prefix, sizeof prefix, "running-%ld-", (long)getpid());
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    if (strncmp(entry->d_name, prefix, (size_t)length) == 0) (void)unlinkat(dirfd(folder), entry->d_name, 0);
}

/* This process ends because somebody wants it to, which the next one must not lay at a device's door. */
static void remove_marks(void) {
  char path[1024];
  if (!tm_preferences_state_path(getenv("XDG_STATE_HOME"), getenv("HOME"), path, sizeof path)) return;
  DIR *folder = opendir(path);
  if (folder == NULL) return;
  remove_own(folder);
  closedir(folder);
}

/* ---- taking them ---- */

/* Ends the thread; to everybody else it means nothing.  Blocked when the thread starts, so that it cannot come too early. */
#define END_SIGNAL SIGURG

static void change_end_mask(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, END_SIGNAL);
  pthread_sigmask(how, &set, NULL);
}

static void *wait_for_signal(void *argument) {
  const tm_interrupt_watch *watch = argument;
  sigset_t set;
  int      number = END_SIGNAL;
  wanted_signals(&set);
  sigaddset(&set, END_SIGNAL);
  if (sigwait(&set, &number) != 0 || number == END_SIGNAL) return NULL;
  if (watch->farewell != NULL) watch->farewell(watch->farewell_context);
  tm_interrupt_act(number);
  return NULL;
}

void tm_interrupt_watch_begin(tm_interrupt_watch *watch) {
  if (watch->is_running) return;
  change_mask(SIG_BLOCK);
  change_end_mask(SIG_BLOCK);
  watch->is_running = pthread_create(&watch->thread, NULL, wait_for_signal, watch) == 0;
  change_end_mask(SIG_UNBLOCK);
  if (!watch->is_running) change_mask(SIG_UNBLOCK);
}

void tm_interrupt_watch_pause(tm_interrupt_watch *watch) {
  if (watch->is_running) {
    (void)pthread_kill(watch->thread, END_SIGNAL);
    (void)pthread_join(watch->thread, NULL);
  }
  watch->is_running = false;
  change_mask(SIG_BLOCK);
}

void tm_interrupt_watch_end(tm_interrupt_watch *watch) {
  tm_interrupt_watch_pause(watch);
  change_mask(SIG_UNBLOCK);
}

void tm_interrupt_unblock(sigset_t *set) {
  for (size_t i = 0; i < SIGNAL_COUNT; i++) (void)sigdelset(set, signals[i]);
}

int tm_interrupt_poll(void) {
  sigset_t wanted, pending, both;
  int      number = 0;
  bool     found = false;
  wanted_signals(&wanted);
  if (sigpending(&pending) != 0) return 0;
  sigemptyset(&both);
  for (size_t i = 0; i < SIGNAL_COUNT; i++) {
    if (sigismember(&wanted, signals[i]) != 1 || sigismember(&pending, signals[i]) != 1) continue;
    sigaddset(&both, signals[i]);
    found = true;
  }
  return found && sigwait(&both, &number) == 0 ? number : 0;
}

void tm_interrupt_act(int signal_number) {
  remove_marks();
  change_mask(SIG_UNBLOCK);
  raise(signal_number);
}

int tm_interrupt_exit_code(int signal_number) { return 128 + signal_number; }
