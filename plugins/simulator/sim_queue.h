/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_queue.h - the queues of a simulated device, each worked off in order by a thread of its own, and the virtual clock:
 * every item has a virtual duration; kernels share one engine and transfers one link, so that each of the two does one
 * thing at a time, and the clock stands at the latest end so far.  It moves with work only.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <pthread.h>

#include "sim_description.h"

#define SIM_QUEUE_ROOM 64u

/* One item: a kernel's task, or bytes to move (task.count 0). */
typedef struct sim_work {
  sim_task    task;
  void      (*run)(const sim_task *task);
  char       *to;
  const char *from;
  uint64_t    bytes;
  uint64_t    spill_bytes;              /* behind the output: whole units are stored */
  uint64_t    virtual_ns;
  uint64_t    waits[SIM_MAX_QUEUES];    /* highest ticket of each queue that comes first */
} sim_work;

typedef struct sim_queues sim_queues;

typedef struct sim_queue {
  sim_queues *all;
  pthread_t   thread;
  sim_work    items[SIM_QUEUE_ROOM];
  uint64_t    issued;
  uint64_t    started;
  uint64_t    done;
  uint64_t    cancelled_first;          /* the last range of tickets that cancel ended; 0: none */
  uint64_t    cancelled_last;
  uint64_t    virtual_ns;               /* when its last item ended */
} sim_queue;

struct sim_queues {
  const tm_host  *host;
  pthread_mutex_t lock;                 /* of all that follows */
  pthread_cond_t  moved;
  pthread_mutex_t engine;               /* held while a kernel runs */
  uint64_t        engine_ns;            /* virtual time when it is free */
  uint64_t        link_ns;
  uint32_t        count;
  uint32_t        is_real;              /* items take as long in real time as in virtual time, at least */
  uint32_t        is_closing;
  sim_queue       queues[SIM_MAX_QUEUES];
};

/* TM_OK, TM_ERROR_NO_MEMORY (no thread); nothing is left then. */
tm_status sim_queues_init(sim_queues *queues, const tm_host *host, uint32_t count, uint32_t is_real);
/* Nothing is pending.  Joins the threads. */
void sim_queues_deinit(sim_queues *queues);

/* The wait list goes into the item.   TM_OK, TM_BUSY (full), TM_ERROR_ARGUMENT (no such queue, a ticket not yet issued) */
tm_status sim_queues_enqueue(sim_queues *queues, uint32_t queue, sim_work *work, const tm_ticket *waits, uint32_t wait_count,
                             tm_ticket *out_ticket);
tm_status sim_queues_wait(sim_queues *queues, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns);
tm_status sim_queues_cancel(sim_queues *queues, uint32_t queue);

/* Time that passes on no queue: a set-up. */
void sim_queues_spend(sim_queues *queues, uint64_t ns);
uint64_t sim_queues_now_ns(sim_queues *queues);
uint64_t sim_queues_queue_ns(sim_queues *queues, uint32_t queue);

#endif
