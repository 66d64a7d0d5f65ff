/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - threads, mutexes and conditions: the operating system's, under names of ours so that only base/ knows it. */
#ifndef TM_BASE_THREAD_H
#define TM_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

typedef struct tm_mutex {
  pthread_mutex_t native;
} tm_mutex;

/* Conditions wait on the monotonic clock. */
typedef struct tm_condition {
  pthread_cond_t native;
} tm_condition;

typedef struct tm_thread {
  pthread_t native;
} tm_thread;

/* TM_ERROR_NO_MEMORY when the system has none left. */
tm_status tm_mutex_init(tm_mutex *mutex);
static inline void tm_mutex_deinit(tm_mutex *mutex) { pthread_mutex_destroy(&mutex->native); }
static inline void tm_mutex_lock(tm_mutex *mutex) { pthread_mutex_lock(&mutex->native); }
static inline bool tm_mutex_try_lock(tm_mutex *mutex) { return pthread_mutex_trylock(&mutex->native) == 0; }
static inline void tm_mutex_unlock(tm_mutex *mutex) { pthread_mutex_unlock(&mutex->native); }

tm_status tm_condition_init(tm_condition *condition);
static inline void tm_condition_deinit(tm_condition *condition) { pthread_cond_destroy(&condition->native); }
static inline void tm_condition_wake_all(tm_condition *condition) { pthread_cond_broadcast(&condition->native); }
/* Waits until woken (true) or until tm_now_ns() reaches the deadline (false); UINT64_MAX: for ever.  May wake for nothing. */
bool tm_condition_wait(tm_condition *condition, tm_mutex *mutex, uint64_t deadline_ns);

tm_status tm_thread_start(tm_thread *thread, void *(*function)(void *), void *argument, tm_error *error);
static inline void tm_thread_join(tm_thread *thread) { pthread_join(thread->native, NULL); }
/* The system's number of the calling thread, for people. */
uint64_t tm_thread_id(void);
/* Nobody will wait for its end. */
static inline void tm_thread_detach(tm_thread *thread) { pthread_detach(thread->native); }

#endif
