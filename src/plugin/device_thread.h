/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_thread.h - for devices that want all their calls from the thread that opened them (TM_DEVICE_OPENING_THREAD): a
 * thread of the device's own, to which calls are handed one at a time.
 */
#ifndef TM_PLUGIN_DEVICE_THREAD_H
#define TM_PLUGIN_DEVICE_THREAD_H

#include "base/memory.h"
#include "base/thread.h"

typedef struct tm_device_thread tm_device_thread;
typedef void (*tm_device_call_fn)(void *argument);

/* TM_ERROR_NO_MEMORY */
tm_status tm_device_thread_start(tm_memory *memory, tm_device_thread **out_thread, tm_error *error);
/* Runs function(argument) on the thread and returns when it has; calls from many threads queue up.  [any thread] */
void tm_device_thread_call(tm_device_thread *thread, tm_device_call_fn function, void *argument);
/* Nobody is calling any more. */
void tm_device_thread_stop(tm_device_thread *thread);

#endif
