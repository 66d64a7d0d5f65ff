/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device_thread.h"

#include <stddef.h>

#include "base/error.h"

struct tm_device_thread {
  tm_memory        *memory;
  tm_thread         thread;
  tm_mutex          lock;
  tm_condition      changed;            /* of anything below; few wait, so one condition serves all */
  tm_device_call_fn function;           /* NULL: idle */
  void             *argument;
  uint64_t          issued;             /* calls handed over */
  uint64_t          finished;
  bool              stopping;
};

static void *serve(void *self) {
  tm_device_thread *thread = self;
  tm_mutex_lock(&thread->lock);
  for (;;) {
    while (thread->function == NULL && !thread->stopping) (void)tm_condition_wait(&thread->changed, &thread->lock, UINT64_MAX);
    if (thread->function == NULL) break;
    tm_mutex_unlock(&thread->lock);
    thread->function(thread->argument);
    tm_mutex_lock(&thread->lock);
    thread->function = NULL;
    thread->finished++;
    tm_condition_wake_all(&thread->changed);
  }
  tm_mutex_unlock(&thread->lock);
  return NULL;
}

tm_status tm_device_thread_start(tm_memory *memory, tm_device_thread **out_thread, tm_error *error) {
  tm_device_thread *thread = tm_memory_calloc(memory, 1, sizeof *thread);
  if (thread == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a device's thread");
  thread->memory = memory;
  if (tm_mutex_init(&thread->lock) != TM_OK) goto free_thread;
  if (tm_condition_init(&thread->changed) != TM_OK) goto deinit_lock;
  if (tm_thread_start(&thread->thread, serve, thread, error) != TM_OK) goto deinit_condition;
  *out_thread = thread;
  return TM_OK;

deinit_condition:
  tm_condition_deinit(&thread->changed);
deinit_lock:
  tm_mutex_deinit(&thread->lock);
free_thread:
  tm_memory_free(memory, thread, sizeof *thread);
  return tm_fail(error, TM_ERROR_NO_MEMORY, "cannot start a device's thread");
}

void tm_device_thread_call(tm_device_thread *thread, tm_device_call_fn function, void *argument) {
  tm_mutex_lock(&thread->lock);
  while (thread->function != NULL) (void)tm_condition_wait(&thread->changed, &thread->lock, UINT64_MAX);
  thread->function = function;
  thread->argument = argument;
  const uint64_t mine = ++thread->issued;
  tm_condition_wake_all(&thread->changed);
  while (thread->finished < mine) (void)tm_condition_wait(&thread->changed, &thread->lock, UINT64_MAX);
  tm_mutex_unlock(&thread->lock);
}

void tm_device_thread_stop(tm_device_thread *thread) {
  if (thread == NULL) return;
  tm_mutex_lock(&thread->lock);
  thread->stopping = true;
  tm_condition_wake_all(&thread->changed);
  tm_mutex_unlock(&thread->lock);
  tm_thread_join(&thread->thread);
  tm_condition_deinit(&thread->changed);
  tm_mutex_deinit(&thread->lock);
  tm_memory_free(thread->memory, thread, sizeof *thread);
}
