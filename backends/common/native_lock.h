/* SPDX-License-Identifier: Apache-2.0 */
/* native_lock.h - mutual exclusion, and giving up the processor. */
#ifndef NATIVE_LOCK_H
#define NATIVE_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/select.h>

typedef struct native_lock {
  pthread_mutex_t mutex;
} native_lock;

/* 0 on success. */
static inline int native_lock_init(native_lock *lock) { return pthread_mutex_init(&lock->mutex, NULL); }
static inline void native_lock_deinit(native_lock *lock) { pthread_mutex_destroy(&lock->mutex); }
static inline void native_lock_take(native_lock *lock) { pthread_mutex_lock(&lock->mutex); }
static inline void native_lock_give(native_lock *lock) { pthread_mutex_unlock(&lock->mutex); }

/* A pause that grows with the number of pauses before it: other threads first, then the processor rests. */
static inline void native_pause(uint32_t times_before) {
  if (times_before < 32) {
    sched_yield();
    return;
  }
  struct timeval pause = { 0, times_before < 256 ? 20 : 200 };
  (void)select(0, NULL, NULL, NULL, &pause);
}

#endif
