/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_backend.h - the state behind the contract's handles. */
#ifndef OPENCL_BACKEND_H
#define OPENCL_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include <tensormorph/plugin.h>

#include "kernel_row.h"
#include "opencl_api.h"

#define OPENCL_MOST_DEVICES 64u
#define OPENCL_NAME_LENGTH 256u
#define OPENCL_QUEUES 2u
#define OPENCL_QUEUE_DEPTH 256u         /* a launch beyond it is TM_BUSY */
#define OPENCL_BUFFER_GRANULE 64u       /* operands start at multiples of it, so every element lies on its own size */

/* A device as it was found. */
typedef struct opencl_found {
  opencl_platform  platform;
  opencl_device_id id;
  kernel_device    facts;               /* epoch and broken_programs are not used here */
  tm_identity      uuid;
  tm_identity      resource;
  tm_memory_space  space;
  const tm_memory_space *spaces[1];
  char             name[OPENCL_NAME_LENGTH];
  char             driver[OPENCL_NAME_LENGTH];
  _Atomic uint32_t broken_programs;     /* the epoch is one more than their number */
} opencl_found;

struct tm_backend {
  const tm_host *host;
  opencl_api     api;
  uint32_t       device_count;
  opencl_found   devices[OPENCL_MOST_DEVICES];
};

/* One place in a queue.  Without an event it was never given to the driver. */
typedef struct opencl_entry {
  opencl_event event;
  tm_status    status;                  /* without an event: what became of it */
} opencl_entry;

/* Values up to `completed` are complete; those up to `issued` lie in the ring. */
typedef struct opencl_queue {
  pthread_mutex_t      lock;
  opencl_command_queue handle;
  uint64_t             issued;
  uint64_t             completed;
  uint64_t             failed;          /* value of the first failure; 0: none */
  tm_status            failure;
  uint32_t             is_unflushed;
  opencl_entry         ring[OPENCL_QUEUE_DEPTH];
} opencl_queue;

/* A compiled program, kept until the device is closed. */
typedef struct opencl_program {
  struct opencl_program *next;
  opencl_program_handle  handle;
  kernel_program         kind;
  char                   options[KERNEL_OPTIONS_LENGTH];
} opencl_program;

struct tm_device {
  tm_backend      *backend;
  opencl_found    *found;
  opencl_context   context;
  pthread_mutex_t  program_lock;
  opencl_program  *programs;
  _Atomic uint32_t is_lost;
  opencl_queue     queues[OPENCL_QUEUES];
};

struct tm_buffer {
  opencl_mem handle;
  uint64_t   bytes;
};

struct tm_kernel {
  kernel_plan          plan;
  opencl_kernel_handle handles[KERNEL_MOST_DISPATCHES];
  pthread_mutex_t      lock;            /* arguments are set and read one launch at a time */
};

static inline void *opencl_alloc(const tm_host *host, uint64_t bytes) { return host->alloc(host->context, bytes, 64); }
static inline void opencl_free(const tm_host *host, void *memory, uint64_t bytes) { host->free(host->context, memory, bytes); }

#endif
