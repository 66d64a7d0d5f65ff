/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a device's queue gets it next, however eager the one who has it is to have it again. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "fakes/fake_case.h"

#include "api/context.h"
#include "plugin/device_queue.h"

#define WAITERS 3u

typedef struct line {
  tm_device_slot  *device;
  _Atomic uint32_t served;
  uint32_t         order[WAITERS];
} line;

typedef struct waiter {
  line    *queue;
  uint32_t number;
  const _Atomic uint32_t *cancelled;
  pthread_t thread;
} waiter;

static void *wait_in_line(void *argument) {
  waiter *w = argument;
  uint32_t queue;
  if (!tm_device_queue_acquire(w->queue->device, w->cancelled, &queue)) return NULL;
  w->queue->order[atomic_load(&w->queue->served)] = w->number;
  atomic_fetch_add(&w->queue->served, 1);
  tm_device_queue_release(w->queue->device, queue);
  return NULL;
}

/* Until they stand in line, as long as that takes. */
static void await_line(line *queue, uint64_t length) {
  for (uint64_t found = 0; found < length;) {
    (void)nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    tm_mutex_lock(&queue->device->lock);
    found = 0;
    for (const tm_queue_waiter *one = queue->device->queue_line; one != NULL; one = one->next) found++;
    tm_mutex_unlock(&queue->device->lock);
  }
}

static void those_who_wait_come_first(void **state) {
  static fake_case one;
  waiter waiters[WAITERS];
  line queue = { .served = 0 };
  (void)state;
  one.controls[0].queue_count = 1;
  fake_case_open(&one, "a", "reference");
  queue.device = one.context->inventory->devices[fake_device_index(&one, "fake_a:0")];
  for (uint32_t round = 0; round < 50; round++) {
    uint32_t mine;
    assert_true(tm_device_queue_acquire(queue.device, NULL, &mine));
    atomic_store(&queue.served, 0);
    for (uint32_t i = 0; i < WAITERS; i++) {
      waiters[i] = (waiter){ .queue = &queue, .number = i };
      assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_in_line, &waiters[i]), 0);
      await_line(&queue, i + 1);
    }
    tm_device_queue_release(queue.device, mine);
    assert_true(tm_device_queue_acquire(queue.device, NULL, &mine));    /* as a job does, at once */
    assert_int_equal(atomic_load(&queue.served), WAITERS);
    for (uint32_t i = 0; i < WAITERS; i++) assert_int_equal(queue.order[i], i);
    tm_device_queue_release(queue.device, mine);
    for (uint32_t i = 0; i < WAITERS; i++) pthread_join(waiters[i].thread, NULL);
  }
  fake_case_close(&one);
}

/* One in the middle goes; those behind it are served all the same. */
static void who_is_cancelled_leaves_the_line(void **state) {
  static fake_case one;
  static _Atomic uint32_t cancelled;
  waiter waiters[WAITERS];
  line queue = { .served = 0 };
  uint32_t mine;
  (void)state;
  one.controls[0].queue_count = 1;
  fake_case_open(&one, "a", "reference");
  queue.device = one.context->inventory->devices[fake_device_index(&one, "fake_a:0")];
  assert_true(tm_device_queue_acquire(queue.device, NULL, &mine));
  for (uint32_t i = 0; i < WAITERS; i++) {
    waiters[i] = (waiter){ .queue = &queue, .number = i, .cancelled = i == 1 ? &cancelled : NULL };
    assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_in_line, &waiters[i]), 0);
    await_line(&queue, i + 1);
  }
  atomic_store(&cancelled, 1);
  pthread_join(waiters[1].thread, NULL);
  tm_device_queue_release(queue.device, mine);
  pthread_join(waiters[0].thread, NULL);
  pthread_join(waiters[2].thread, NULL);
  assert_int_equal(atomic_load(&queue.served), 2);
  assert_int_equal(queue.order[0], 0);
  assert_int_equal(queue.order[1], 2);
  fake_case_close(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(those_who_wait_come_first), cmocka_unit_test(who_is_cancelled_leaves_the_line) };
  return cmocka_run_group_tests_name("device_queue", tests, NULL, NULL);
}
