/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

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

void tm_interrupt_hold(void) { change_mask(SIG_BLOCK); }
void tm_interrupt_release(void) { change_mask(SIG_UNBLOCK); }

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
  tm_interrupt_release();
  raise(signal_number);
}

int tm_interrupt_exit_code(int signal_number) { return 128 + signal_number; }
