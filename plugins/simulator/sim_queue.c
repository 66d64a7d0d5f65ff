/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim_queue.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void sleep_ns(uint64_t ns) {
  struct timespec rest = { (time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS) };
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) continue;
}

static int is_transfer(const sim_work *work) { return work->task.count == 0; }

/* ---- the clock ---- */

/* Called under the lock, when an item is done. */
static void advance(sim_queues *all, sim_queue *queue, const sim_work *work) {
  uint64_t *unit = is_transfer(work) ? &all->link_ns : &all->engine_ns;
  uint64_t start = larger(queue->virtual_ns, *unit);
  for (uint32_t i = 0; i < all->count; i++)
    if (work->waits[i] != 0) start = larger(start, all->queues[i].virtual_ns);
  queue->virtual_ns = *unit = start + work->virtual_ns;
}

uint64_t sim_queues_now_ns(sim_queues *queues) {
  pthread_mutex_lock(&queues->lock);
  const uint64_t now = larger(queues->engine_ns, queues->link_ns);
  pthread_mutex_unlock(&queues->lock);
  return now;
}

uint64_t sim_queues_queue_ns(sim_queues *queues, uint32_t queue) {
  if (queue >= queues->count) return 0;
  pthread_mutex_lock(&queues->lock);
  const uint64_t now = queues->queues[queue].virtual_ns;
  pthread_mutex_unlock(&queues->lock);
  return now;
}

void sim_queues_spend(sim_queues *queues, uint64_t ns) {
  pthread_mutex_lock(&queues->lock);
  queues->engine_ns += ns;
  pthread_mutex_unlock(&queues->lock);
  if (queues->is_real) sleep_ns(ns);
}

/* ---- working ---- */

static void compute(const sim_work *work) {
  if (is_transfer(work)) {
    if (work->bytes != 0) memcpy(work->to, work->from, work->bytes);
    return;
  }
  work->run(&work->task);
  if (work->spill_bytes != 0) memset(work->to, 0x5a, work->spill_bytes);
}

/* Outside the lock.  Kernels hold the engine for as long as they last. */
static void execute(sim_queues *all, const sim_work *work) {
  const uint64_t start = all->host->now_ns(all->host->context);
  if (!is_transfer(work)) pthread_mutex_lock(&all->engine);
  compute(work);
  const uint64_t spent = all->host->now_ns(all->host->context) - start;
  if (all->is_real && spent < work->virtual_ns) sleep_ns(work->virtual_ns - spent);
  if (!is_transfer(work)) pthread_mutex_unlock(&all->engine);
}

static int is_ready(const sim_queue *queue) {
  const sim_work *work = &queue->items[queue->started % SIM_QUEUE_ROOM];
  if (queue->started == queue->issued) return 0;
  for (uint32_t i = 0; i < queue->all->count; i++)
    if (queue->all->queues[i].done < work->waits[i]) return 0;
  return 1;
}

static int is_cancelled(const sim_queue *queue, uint64_t ticket) {
  return ticket >= queue->cancelled_first && ticket <= queue->cancelled_last;
}

/* Cancelled work waits for nothing. */
static void skip_cancelled(sim_queue *queue) {
  if (queue->started == queue->issued || !is_cancelled(queue, queue->started + 1)) return;
  queue->started = queue->done = queue->cancelled_last;
  pthread_cond_broadcast(&queue->all->moved);
}

static void *work_off(void *argument) {
  sim_queue *queue = argument;
  sim_queues *all = queue->all;
  pthread_mutex_lock(&all->lock);
  while (!all->is_closing) {
    skip_cancelled(queue);
    if (!is_ready(queue)) {
      pthread_cond_wait(&all->moved, &all->lock);
      continue;
    }
    const sim_work *work = &queue->items[queue->started++ % SIM_QUEUE_ROOM];
    pthread_mutex_unlock(&all->lock);
    execute(all, work);
    pthread_mutex_lock(&all->lock);
    advance(all, queue, work);
    queue->done++;
    pthread_cond_broadcast(&all->moved);
  }
  pthread_mutex_unlock(&all->lock);
  return NULL;
}

/* ---- life ---- */

static void stop(sim_queues *queues, uint32_t thread_count) {
  pthread_mutex_lock(&queues->lock);
  queues->is_closing = 1;
  pthread_cond_broadcast(&queues->moved);
  pthread_mutex_unlock(&queues->lock);
  for (uint32_t i = 0; i < thread_count; i++) (void)pthread_join(queues->queues[i].thread, NULL);
  pthread_cond_destroy(&queues->moved);
  pthread_mutex_destroy(&queues->engine);
  pthread_mutex_destroy(&queues->lock);
}

tm_status sim_queues_init(sim_queues *queues, const tm_host *host, uint32_t count, uint32_t is_real) {
  pthread_condattr_t monotonic;
  memset(queues, 0, sizeof *queues);
  queues->host = host;
  queues->count = count;
  queues->is_real = is_real;
  pthread_mutex_init(&queues->lock, NULL);
  pthread_mutex_init(&queues->engine, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&queues->moved, &monotonic);
  pthread_condattr_destroy(&monotonic);
  for (uint32_t i = 0; i < count; i++) queues->queues[i].all = queues;
  for (uint32_t i = 0; i < count; i++) {
    if (pthread_create(&queues->queues[i].thread, NULL, work_off, &queues->queues[i]) == 0) continue;
    stop(queues, i);
    return TM_ERROR_NO_MEMORY;
  }
  return TM_OK;
}

void sim_queues_deinit(sim_queues *queues) { stop(queues, queues->count); }

/* ---- the host's side ---- */

static int is_issued(const sim_queues *queues, const tm_ticket *ticket) {
  return ticket->queue < queues->count && ticket->value <= queues->queues[ticket->queue].issued;
}

tm_status sim_queues_enqueue(sim_queues *queues, uint32_t index, sim_work *work, const tm_ticket *waits, uint32_t wait_count,
                             tm_ticket *out_ticket) {
  if (index >= queues->count) return TM_ERROR_ARGUMENT;
  sim_queue *queue = &queues->queues[index];
  tm_status status = TM_OK;
  pthread_mutex_lock(&queues->lock);
  for (uint32_t i = 0; i < wait_count && status == TM_OK; i++) {
    if (!is_issued(queues, &waits[i])) status = TM_ERROR_ARGUMENT;
    else work->waits[waits[i].queue] = larger(work->waits[waits[i].queue], waits[i].value);
  }
  if (status == TM_OK && queue->issued - queue->done == SIM_QUEUE_ROOM) status = TM_BUSY;
  if (status == TM_OK) {
    queue->items[queue->issued % SIM_QUEUE_ROOM] = *work;
    *out_ticket = (tm_ticket){ .queue = index, .value = ++queue->issued };
    pthread_cond_broadcast(&queues->moved);
  }
  pthread_mutex_unlock(&queues->lock);
  return status;
}

/* TM_PENDING while it is not complete. */
static tm_status outcome(const sim_queues *queues, const tm_ticket *ticket) {
  if (ticket->value == 0) return TM_OK;
  if (!is_issued(queues, ticket)) return TM_ERROR_ARGUMENT;
  const sim_queue *queue = &queues->queues[ticket->queue];
  if (queue->done < ticket->value) return TM_PENDING;
  return is_cancelled(queue, ticket->value) ? TM_ERROR_CANCELLED : TM_OK;
}

static struct timespec deadline_after(uint64_t ns) {
  struct timespec now = { 0, 0 };
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t sum = (uint64_t)now.tv_nsec + ns % SECOND_NS;
  return (struct timespec){ now.tv_sec + (time_t)(ns / SECOND_NS) + (time_t)(sum / SECOND_NS), (long)(sum % SECOND_NS) };
}

/* TM_PENDING once the deadline has passed. */
static tm_status wait_for(sim_queues *queues, const tm_ticket *ticket, uint64_t timeout_ns, const struct timespec *deadline) {
  tm_status status = outcome(queues, ticket);
  int is_late = timeout_ns == TM_WAIT_POLL;
  while (status == TM_PENDING && !is_late) {
    if (timeout_ns == TM_WAIT_FOREVER) pthread_cond_wait(&queues->moved, &queues->lock);
    else is_late = pthread_cond_timedwait(&queues->moved, &queues->lock, deadline) == ETIMEDOUT;
    status = outcome(queues, ticket);
  }
  return status;
}

tm_status sim_queues_wait(sim_queues *queues, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const struct timespec deadline = deadline_after(timeout_ns);
  tm_status first = TM_OK;
  pthread_mutex_lock(&queues->lock);
  for (uint32_t i = 0; i < count && first != TM_PENDING; i++) {
    const tm_status status = wait_for(queues, &tickets[i], timeout_ns, &deadline);
    if (first == TM_OK || status == TM_PENDING) first = status;
  }
  pthread_mutex_unlock(&queues->lock);
  return first;
}

/* What has not started will not; what runs is to be asked for again. */
tm_status sim_queues_cancel(sim_queues *queues, uint32_t index) {
  if (index >= queues->count) return TM_OK;
  sim_queue *queue = &queues->queues[index];
  pthread_mutex_lock(&queues->lock);
  if (queue->issued > queue->started) {
    queue->cancelled_first = queue->started + 1;
    queue->cancelled_last = queue->issued;
  }
  const tm_status status = queue->started == queue->done ? TM_OK : TM_BUSY;
  if (status == TM_OK) skip_cancelled(queue);
  pthread_mutex_unlock(&queues->lock);
  return status;
}
