/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system_error.h"

#define NS_PER_SECOND UINT64_C(1000000000)

tm_status tm_mutex_init(tm_mutex *mutex) {
  return pthread_mutex_init(&mutex->native, NULL) == 0 ? TM_OK : TM_ERROR_NO_MEMORY;
}

tm_status tm_condition_init(tm_condition *condition) {
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) return TM_ERROR_NO_MEMORY;
  int code = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  if (code == 0) code = pthread_cond_init(&condition->native, &attributes);
  pthread_condattr_destroy(&attributes);
  return code == 0 ? TM_OK : TM_ERROR_NO_MEMORY;
}

bool tm_condition_wait(tm_condition *condition, tm_mutex *mutex, uint64_t deadline_ns) {
  if (deadline_ns == UINT64_MAX) return pthread_cond_wait(&condition->native, &mutex->native) == 0;
  const struct timespec until = { (time_t)(deadline_ns / NS_PER_SECOND), (long)(deadline_ns % NS_PER_SECOND) };
  return pthread_cond_timedwait(&condition->native, &mutex->native, &until) != ETIMEDOUT;
}

tm_status tm_thread_start(tm_thread *thread, void *(*function)(void *), void *argument, tm_error *error) {
  const int code = pthread_create(&thread->native, NULL, function, argument);
  if (code == 0) return TM_OK;
  return tm_fail_native(error, TM_ERROR_NO_MEMORY, code, "cannot start a thread: %s", tm_system_error(code).text);
}

uint64_t tm_thread_id(void) { return (uint64_t)gettid(); }
