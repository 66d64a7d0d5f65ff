/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/fault_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#if defined(__SANITIZE_THREAD__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

/*
 * The handler may run at any moment in any thread, so it takes no lock.  Each range carries a version that is odd while
 * the range changes; the handler ignores a range whose version is odd or moved under it.  That loses nothing: the range
 * it looks for belongs to whoever is reading from it right now, who must not have left yet.
 */
struct tm_fault_range {
  _Atomic uint64_t  version;
  _Atomic uintptr_t begin;      /* begin == end: free */
  _Atomic uintptr_t end;
  _Atomic int       protection; /* of the pages that take the place of failing ones */
  _Atomic uint64_t  fault_offset;
};

#define RANGE_COUNT 4096u       /* more mappings than this fall back to reads */

typedef void (*action_fn)(int, siginfo_t *, void *);
typedef void (*handler_fn)(int);

static struct {
  /* under the lock */
  pthread_mutex_t  lock;
  uint32_t         used_count;
  bool             is_installed;
  struct sigaction previous;
  /* read by the handler */
  tm_fault_range    ranges[RANGE_COUNT];
  _Atomic uint32_t  range_end;          /* one past the highest range ever used */
  _Atomic uintptr_t page_bytes;
  _Atomic(action_fn)  previous_action;  /* of these two at most one is not NULL */
  _Atomic(handler_fn) previous_handler;
} guard = { .lock = PTHREAD_MUTEX_INITIALIZER };

_Static_assert(ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "the handler must not take a lock");

/* ----------------------------------------------------------------------------------------------------- handler ---- */

static tm_fault_range *find_range(uintptr_t address, uintptr_t *out_begin, uintptr_t *out_end, int *out_protection) {
  const uint32_t range_end = atomic_load(&guard.range_end);
  for (uint32_t i = 0; i < range_end; i++) {
    tm_fault_range *range = &guard.ranges[i];
    const uint64_t version = atomic_load(&range->version);
    const uintptr_t begin = atomic_load(&range->begin), end = atomic_load(&range->end);
    const int protection = atomic_load(&range->protection);
    if ((version & 1) != 0 || atomic_load(&range->version) != version) continue;
    if (address < begin || address >= end) continue;
    *out_begin = begin;
    *out_end = end;
    *out_protection = protection;
    return range;
  }
  return NULL;
}

static void lower_to(_Atomic uint64_t *lowest, uint64_t value) {
  uint64_t seen = atomic_load(lowest);
  while (value < seen && !atomic_compare_exchange_weak(lowest, &seen, value)) {
  }
}

/* The thread sanitizer takes its own mmap for a write, which would race with every other thread that reads there. */
static void *map_zeros(void *pages, size_t bytes, int protection) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#if defined(__SANITIZE_THREAD__)
  return (void *)syscall(SYS_mmap, pages, bytes, protection, flags, -1, 0);
#else
  return mmap(pages, bytes, protection, flags, -1, 0);
#endif
}

/* Everything from the failing page on becomes zeros at once: after a truncation the rest fails as well, and a fault a
   page would cost a system call each and could split the mapping into more pieces than the system allows. */
static bool replace_pages(uintptr_t address) {
  uintptr_t begin, end;
  int protection;
  tm_fault_range *range = find_range(address, &begin, &end, &protection);
  if (range == NULL) return false;
  const uintptr_t page = address - address % atomic_load(&guard.page_bytes);
  /* An integer is all that siginfo gives us to make the address from. */
  void *pages = (void *)page; /* NOLINT(performance-no-int-to-ptr) */
  if (map_zeros(pages, end - page, protection) == MAP_FAILED) return false;
  lower_to(&range->fault_offset, address - begin);
  return true;
}

/* A fault that is not ours goes to whoever was there before, as if we were not. */
static void pass_on(int number, siginfo_t *info, void *context) {
  const action_fn action = atomic_load(&guard.previous_action);
  const handler_fn handler = atomic_load(&guard.previous_handler);
  const bool was_sent = info->si_code <= 0;     /* by kill or raise; the kernel's own faults cannot be ignored */
  if (action != NULL) {
    action(number, info, context);
  } else if (handler != NULL && handler != SIG_IGN) {
    handler(number);
  } else if (handler == NULL || !was_sent) {
    (void)signal(number, SIG_DFL);
    (void)raise(number);        /* pending until this handler returns */
  }
}

/* An unaligned access (BUS_ADRALN) would fail again after its pages were replaced, so it is never ours. */
static void on_fault(int number, siginfo_t *info, void *context) {
  const int saved_errno = errno;
  const bool is_file_fault = info->si_code > 0 && info->si_code != BUS_ADRALN;
  if (!is_file_fault || !replace_pages((uintptr_t)info->si_addr)) pass_on(number, info, context);
  errno = saved_errno;
}

/* ------------------------------------------------------------------------------------------------- registration ---- */

static bool is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_fault;
}

static bool is_plain(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) == 0 && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

static void remember_previous(const struct sigaction *previous) {
  const bool takes_info = (previous->sa_flags & SA_SIGINFO) != 0;
  const handler_fn handler = takes_info || previous->sa_handler == SIG_DFL ? NULL : previous->sa_handler;
  guard.previous = *previous;
  atomic_store(&guard.previous_action, takes_info ? previous->sa_sigaction : NULL);
  atomic_store(&guard.previous_handler, handler);
}

/* If somebody put a handler on top of ours, it is theirs to pass faults on to us; installing ours again above it would
   make the two call each other for ever. */
static bool ensure_installed(void) {
  struct sigaction current;
  if (sigaction(SIGBUS, NULL, &current) != 0) return false;
  if (is_ours(&current) || (guard.is_installed && !is_plain(&current))) return true;
  atomic_store(&guard.page_bytes, (uintptr_t)sysconf(_SC_PAGESIZE));
  remember_previous(&current);
  struct sigaction ours = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
  ours.sa_mask = current.sa_mask;
  ours.sa_sigaction = on_fault;
  guard.is_installed = sigaction(SIGBUS, &ours, NULL) == 0;
  return guard.is_installed;
}

static void uninstall(void) {
  struct sigaction current;
  if (sigaction(SIGBUS, NULL, &current) != 0) return;
  if (is_ours(&current)) (void)sigaction(SIGBUS, &guard.previous, NULL);
  guard.is_installed = !is_ours(&current) && !is_plain(&current);
}

static void set_range(tm_fault_range *range, uintptr_t begin, uintptr_t end, int protection) {
  atomic_fetch_add(&range->version, 1);
  atomic_store(&range->begin, begin);
  atomic_store(&range->end, end);
  atomic_store(&range->protection, protection);
  atomic_store(&range->fault_offset, TM_NO_FAULT);
  atomic_fetch_add(&range->version, 1);
}

static tm_fault_range *find_free_range(void) {
  for (uint32_t i = 0; i < RANGE_COUNT; i++) {
    tm_fault_range *range = &guard.ranges[i];
    if (atomic_load(&range->begin) != atomic_load(&range->end)) continue;
    if (i >= atomic_load(&guard.range_end)) atomic_store(&guard.range_end, i + 1);
    return range;
  }
  return NULL;
}

tm_fault_range *tm_fault_guard_enter(const void *begin, uint64_t bytes, bool is_writable) {
  (void)pthread_mutex_lock(&guard.lock);
  tm_fault_range *range = ensure_installed() ? find_free_range() : NULL;
  if (range != NULL) {
    set_range(range, (uintptr_t)begin, (uintptr_t)begin + (uintptr_t)bytes, is_writable ? PROT_READ | PROT_WRITE : PROT_READ);
    guard.used_count++;
  } else if (guard.used_count == 0) {
    uninstall();
  }
  (void)pthread_mutex_unlock(&guard.lock);
  return range;
}

void tm_fault_guard_leave(tm_fault_range *range) {
  if (range == NULL) return;
  (void)pthread_mutex_lock(&guard.lock);
  set_range(range, 0, 0, PROT_READ);
  if (--guard.used_count == 0) uninstall();
  (void)pthread_mutex_unlock(&guard.lock);
}

uint64_t tm_fault_guard_offset(const tm_fault_range *range) { return atomic_load(&range->fault_offset); }
