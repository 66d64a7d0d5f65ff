/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/loading_watch.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance/process_children.h"
#include "conformance/process_state.h"

/* In memory that a copy of the process shares. */
struct loading_watch {
  pid_t            owner;
  _Atomic uint32_t has_copy;
  process_state    before;
  process_children children;
  uint32_t         thread_count;
  uint32_t         descriptor_count;
  int              sink;
  int              streams[2];          /* the standard ones meanwhile */
  char             text[200];
};

/* The first is told. */
__attribute__((format(printf, 2, 3))) static void tell(loading_watch *w, const char *format, ...) {
  va_list arguments;
  if (w->text[0] != '\0') return;
  va_start(arguments, format);
  vsnprintf(w->text, sizeof w->text, format, arguments);
  va_end(arguments);
}

static void tell_difference(void *context, const char *what) { tell(context, "changes %s", what); }

static void redirect(loading_watch *w) {
  fflush(NULL);
  w->sink = memfd_create("loading", MFD_CLOEXEC);
  for (int i = 0; i < 2; i++) {
    w->streams[i] = w->sink < 0 ? -1 : dup(STDOUT_FILENO + i);
    if (w->streams[i] >= 0) (void)dup2(w->sink, STDOUT_FILENO + i);
  }
}

static void restore(loading_watch *w) {
  fflush(NULL);
  for (int i = 0; i < 2; i++) {
    if (w->streams[i] < 0) continue;
    (void)dup2(w->streams[i], STDOUT_FILENO + i);
    close(w->streams[i]);
  }
  if (w->sink >= 0) close(w->sink);
}

loading_watch *loading_watch_begin(void) {
  loading_watch *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (w == MAP_FAILED) return NULL;
  w->owner = getpid();
  process_children_read(&w->children);
  redirect(w);
  process_state_read(&w->before, NULL);
  w->descriptor_count = process_descriptor_count();
  w->thread_count = process_thread_count(UINT32_MAX);
  return w;
}

void loading_watch_end(loading_watch *w, char *text, size_t capacity) {
  process_state after;
  text[0] = '\0';
  if (w == NULL) return;
  if (getpid() != w->owner) {           /* made by a constructor that came back twice: nobody waits for what it would find out */
    atomic_store(&w->has_copy, 1);
    _exit(0);
  }
  process_state_read(&after, NULL);
  if (after.printed_bytes > w->before.printed_bytes)
    tell(w, "prints %llu bytes", (unsigned long long)(after.printed_bytes - w->before.printed_bytes));
  process_state_compare(&w->before, &after, tell_difference, w);
  const uint32_t threads = process_thread_count(w->thread_count), descriptors = process_descriptor_count();
  if (threads > w->thread_count) tell(w, "starts %u thread(s)", threads - w->thread_count);
  if (descriptors > w->descriptor_count) tell(w, "leaves %u file descriptor(s) open", descriptors - w->descriptor_count);
  restore(w);
  const uint32_t children = process_children_end(&w->children);
  if (children != 0) tell(w, "leaves %u process(es) running", children);
  if (atomic_load(&w->has_copy) != 0) tell(w, "makes a copy of the process");
  snprintf(text, capacity, "%s", w->text);
  (void)munmap(w, sizeof *w);
}
