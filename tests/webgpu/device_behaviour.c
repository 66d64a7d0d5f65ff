/* SPDX-License-Identifier: Apache-2.0 */
/* Queues, transfers and limits of the WebGPU backend on a real implementation. */
#include <pthread.h>

#include "webgpu/webgpu_subject.h"

#include "kernels/kernel_cases.h"

#define ROOM 4096u
#define MEGABYTE (UINT64_C(1) << 20)

/* ---- transfers ---- */

static uint64_t state_of(void **state) { return *(uint64_t *)*state; }

static void random_transfer(subject *s, tm_buffer *const *buffers, unsigned char model[2][ROOM], uint64_t *state) {
  unsigned char bytes[64];
  const uint64_t from = random_below(state, ROOM - 64), to = random_below(state, ROOM - 64), count = random_below(state, 64);
  const uint64_t a = random_below(state, 2), b = random_below(state, 2);
  for (uint64_t i = 0; i < 64; i++) bytes[i] = (unsigned char)random_u64(state);
  tm_transfer transfer = { .struct_size = sizeof transfer, .bytes = count };
  switch (random_below(state, 3)) {
    case 0:
      transfer.destination = buffers[a];
      transfer.destination_offset = to;
      transfer.host = bytes;
      finish(s, put(s, s->table.upload, &transfer));
      memcpy(model[a] + to, bytes, count);
      break;
    case 1:
      transfer.destination = buffers[a];
      transfer.destination_offset = to;
      transfer.source = buffers[b];
      transfer.source_offset = from;
      (void)put(s, s->table.copy, &transfer);
      memmove(model[a] + to, model[b] + from, count);
      break;
    default:
      transfer.source = buffers[b];
      transfer.source_offset = from;
      transfer.host = bytes;
      finish(s, put(s, s->table.download, &transfer));
      assert_memory_equal(bytes, model[b] + from, count);
  }
}

/* Any offset and any count: neighbours keep their bytes. */
static void transfers_move_single_bytes(void **state) {
  static unsigned char model[2][ROOM], read[ROOM];
  uint64_t seed = state_of(state);
  subject s;
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  tm_buffer *buffers[2] = { make_buffer(&s, ROOM), make_buffer(&s, ROOM) };
  for (int i = 0; i < 2; i++) {
    for (uint32_t k = 0; k < ROOM; k++) model[i][k] = (unsigned char)random_u64(&seed);
    write_all(&s, buffers[i], model[i], ROOM);
  }
  for (int i = 0; i < 400; i++) random_transfer(&s, buffers, model, &seed);
  for (int i = 0; i < 2; i++) {
    read_all(&s, buffers[i], read, ROOM);
    assert_memory_equal(read, model[i], ROOM);
    drop_buffer(&s, buffers[i], ROOM);
  }
  webgpu_subject_close(&s);
}

static void large_transfers_arrive(void **state) {
  const uint64_t bytes = 80 * MEGABYTE + 20;
  uint64_t seed = state_of(state), *out = malloc(bytes + 8), *back = malloc(bytes + 8);
  subject s;
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  assert_non_null(out);
  assert_non_null(back);
  for (uint64_t i = 0; i <= bytes / 8; i++) out[i] = random_u64(&seed);
  tm_buffer *buffer = make_buffer(&s, bytes);
  write_all(&s, buffer, out, bytes);
  read_all(&s, buffer, back, bytes);
  assert_memory_equal(out, back, bytes);
  drop_buffer(&s, buffer, bytes);
  free(out);
  free(back);
  webgpu_subject_close(&s);
}

/* ---- queues ---- */

typedef struct chain {
  addition   add;
  tm_buffer *one, *values[2];
} chain;

static void chain_make(chain *c, subject *s, uint64_t count) {
  int32_t *ones = malloc(count * 4), *zeros = calloc(count, 4);
  for (uint64_t i = 0; i < count; i++) ones[i] = 1;
  addition_prepare(&c->add, s, count);
  c->one = make_buffer(s, count * 4);
  write_all(s, c->one, ones, count * 4);
  for (int i = 0; i < 2; i++) {
    c->values[i] = make_buffer(s, count * 4);
    write_all(s, c->values[i], zeros, count * 4);
  }
  free(ones);
  free(zeros);
}

static void chain_drop(chain *c, subject *s) {
  s->table.release(s->device, c->add.kernel);
  drop_buffer(s, c->one, 0);
  for (int i = 0; i < 2; i++) drop_buffer(s, c->values[i], 0);
}

static tm_ticket chain_step(chain *c, subject *s, uint32_t queue, int step, const tm_ticket *wait) {
  const tm_binding bindings[] = { { c->values[step % 2], 0, 0 }, { c->one, 0, 0 }, { c->values[(step + 1) % 2], 0, 0 } };
  tm_ticket ticket = { 0, 0, 0 };
  const tm_status status = launch(s, queue, &c->add, bindings, wait, wait != NULL, &ticket);
  if (status != TM_OK) fail_msg("launch gave %d: %s", status, s->text);
  return ticket;
}

/* A thousand launches, one wait; then the same over two queues that wait for each other. */
static void launches_run_in_order(void **state) {
  (void)state;
  subject s;
  chain c;
  int32_t values[300];
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  chain_make(&c, &s, 300);
  tm_ticket ticket = { 0, 0, 0 };
  for (int i = 0; i < 1000; i++) ticket = chain_step(&c, &s, 0, i, NULL);
  finish(&s, ticket);
  for (int i = 0; i < 100; i++) ticket = chain_step(&c, &s, (uint32_t)i % 2, i, &ticket);
  finish(&s, ticket);
  read_all(&s, c.values[0], values, sizeof values);
  for (int i = 0; i < 300; i++) assert_int_equal(values[i], 1100);
  chain_drop(&c, &s);
  webgpu_subject_close(&s);
}

static void waits_come_in_any_order(void **state) {
  (void)state;
  subject s;
  chain c;
  tm_ticket tickets[8];
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  chain_make(&c, &s, 64);
  for (int i = 0; i < 8; i++) tickets[i] = chain_step(&c, &s, 0, i, NULL);
  for (int i = 1; i < 8; i++) assert_int_equal(tickets[i].value, tickets[i - 1].value + 1);
  const tm_ticket future = { 0, 0, tickets[7].value + 1 }, foreign = { 77, 0, 1 };
  assert_int_equal(s.table.wait(s.device, &future, 1, TM_WAIT_POLL), TM_ERROR_ARGUMENT);
  assert_int_equal(s.table.wait(s.device, &foreign, 1, TM_WAIT_POLL), TM_ERROR_ARGUMENT);
  finish(&s, tickets[5]);
  finish(&s, tickets[2]);
  assert_int_equal(s.table.wait(s.device, tickets, 8, TM_WAIT_FOREVER), TM_OK);
  assert_int_equal(s.table.wait(s.device, tickets, 8, TM_WAIT_POLL), TM_OK);
  assert_int_equal(s.table.wait(s.device, NULL, 0, TM_WAIT_FOREVER), TM_OK);
  chain_drop(&c, &s);
  webgpu_subject_close(&s);
}

/* What was not submitted is dropped; the queue works on. */
static void cancelled_work_does_not_run(void **state) {
  (void)state;
  subject s;
  chain c;
  int32_t values[64];
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  chain_make(&c, &s, 64);
  const tm_ticket done = chain_step(&c, &s, 0, 0, NULL);
  finish(&s, done);
  const tm_ticket dropped = chain_step(&c, &s, 0, 1, NULL);
  tm_status status = TM_BUSY;
  while (status == TM_BUSY) status = s.table.cancel(s.device, 0);
  assert_int_equal(status, TM_OK);
  assert_int_equal(s.table.wait(s.device, &dropped, 1, TM_WAIT_FOREVER), TM_ERROR_CANCELLED);
  assert_int_equal(s.table.wait(s.device, &done, 1, TM_WAIT_FOREVER), TM_OK);
  read_all(&s, c.values[0], values, sizeof values);
  assert_int_equal(values[63], 0);
  finish(&s, chain_step(&c, &s, 0, 1, NULL));
  read_all(&s, c.values[0], values, sizeof values);
  assert_int_equal(values[63], 2);
  chain_drop(&c, &s);
  webgpu_subject_close(&s);
}

/* ---- operands that share a buffer ---- */

static void operands_may_share_a_buffer(void **state) {
  (void)state;
  subject s;
  addition a;
  int32_t bytes[3 * 256];
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  addition_prepare(&a, &s, 64);
  for (int i = 0; i < 3 * 256; i++) bytes[i] = i;
  tm_buffer *buffer = make_buffer(&s, sizeof bytes);
  write_all(&s, buffer, bytes, sizeof bytes);
  const tm_binding apart[] = { { buffer, 0, 256 }, { buffer, 1024, 256 }, { buffer, 2048, 256 } };
  tm_ticket ticket = { 0, 0, 0 };
  assert_int_equal(launch(&s, 0, &a, apart, NULL, 0, &ticket), TM_OK);
  const tm_binding crooked[] = { { buffer, 4, 256 }, { buffer, 1024, 256 }, { buffer, 2048, 256 } };
  assert_int_equal(launch(&s, 0, &a, crooked, NULL, 0, &ticket), TM_ERROR_ARGUMENT);
  const tm_binding beyond[] = { { buffer, 0, 256 }, { buffer, 3072, 256 }, { buffer, 2048, 256 } };
  assert_int_equal(launch(&s, 0, &a, beyond, NULL, 0, &ticket), TM_ERROR_ARGUMENT);
  int32_t after[3 * 256];
  read_all(&s, buffer, after, sizeof after);
  for (int i = 0; i < 3 * 256; i++) assert_int_equal(after[i], i >= 512 && i < 576 ? (i - 512) + (i - 256) : i);
  s.table.release(s.device, a.kernel);
  drop_buffer(&s, buffer, sizeof bytes);
  webgpu_subject_close(&s);
}

/* ---- limits ---- */

static void larger_than_a_binding_asks_for_a_split(void **state) {
  (void)state;
  const subject_settings small = { .words = { "max_binding_bytes=1048576" }, .count = 1 };
  subject s;
  addition a;
  if (!webgpu_subject_is_open(&s, &small)) skip();
  assert_true(s.space.largest_binding_bytes == MEGABYTE);
  addition_ask(&a, &s, TM_OP_ADD, 1000000);
  assert_int_equal(a.answer.level, TM_LEVEL_REFUSED);
  assert_true((a.answer.reasons & TM_REASON_SIZE) != 0);
  assert_int_equal(a.answer.change_count, 1);
  assert_int_equal(a.answer.changes[0].kind, TM_CHANGE_SPLIT_ABOVE);
  assert_int_equal(a.answer.changes[0].axis, 0);
  const uint64_t part = a.answer.changes[0].value;
  assert_true(part > 200000 && part <= MEGABYTE / 4);
  addition_ask(&a, &s, TM_OP_ADD, part);
  assert_int_equal(a.answer.level, TM_LEVEL_NATIVE);
  webgpu_subject_close(&s);
}

static void a_huge_buffer_is_no_memory(void **state) {
  (void)state;
  subject s;
  tm_buffer *buffer = NULL;
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  assert_int_equal(s.table.buffer_create(s.device, 0, UINT64_C(1) << 50, &buffer), TM_ERROR_NO_MEMORY);
  assert_int_equal(s.table.buffer_create(s.device, 0, UINT64_MAX, &buffer), TM_ERROR_NO_MEMORY);
  webgpu_subject_close(&s);
}

/* Software adapters run on the cores that the host counts. */
static void a_software_adapter_is_the_host_cores(void **state) {
  (void)state;
  const tm_identity cores = TM_HOST_CORES;
  subject s;
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  assert_memory_equal(&s.info.resource, &cores, sizeof cores);
  assert_true(s.space.store_granule == 4 && s.space.offset_granule >= 4);
  tm_device_info other = { .struct_size = sizeof other };
  for (uint32_t i = 1; s.table.device_info(s.backend, i, &other) == TM_OK; i++)
    assert_memory_not_equal(&other.uuid, &s.info.uuid, sizeof other.uuid);
  webgpu_subject_close(&s);
}

/* ---- threads ---- */

typedef struct worker {
  subject *s;
  uint32_t queue;
  chain    c;
  int32_t  last;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  int32_t values[128] = { 0 };
  tm_ticket ticket = { 0, 0, 0 };
  for (int i = 0; i < 200; i++) ticket = chain_step(&w->c, w->s, w->queue, i, NULL);
  const tm_transfer transfer = { .struct_size = sizeof transfer, .queue = w->queue, .source = w->c.values[0], .host = values,
      .bytes = sizeof values };
  ticket = put(w->s, w->s->table.download, &transfer);
  finish(w->s, ticket);
  w->last = values[127];
  return NULL;
}

static void queues_serve_two_threads(void **state) {
  (void)state;
  subject s;
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  worker workers[2] = { { &s, 0, { .one = NULL }, 0 }, { &s, 1, { .one = NULL }, 0 } };
  pthread_t thread;
  for (int i = 0; i < 2; i++) chain_make(&workers[i].c, &s, 128);
  assert_int_equal(pthread_create(&thread, NULL, work, &workers[1]), 0);
  work(&workers[0]);
  pthread_join(thread, NULL);
  assert_int_equal(workers[0].last, 200);
  assert_int_equal(workers[1].last, 200);
  for (int i = 0; i < 2; i++) chain_drop(&workers[i].c, &s);
  webgpu_subject_close(&s);
}

int main(void) {
  uint64_t seed = 20261130;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_prestate(transfers_move_single_bytes, &seed),
    cmocka_unit_test_prestate(large_transfers_arrive, &seed),
    cmocka_unit_test(launches_run_in_order),
    cmocka_unit_test(waits_come_in_any_order),
    cmocka_unit_test(cancelled_work_does_not_run),
    cmocka_unit_test(operands_may_share_a_buffer),
    cmocka_unit_test(larger_than_a_binding_asks_for_a_split),
    cmocka_unit_test(a_huge_buffer_is_no_memory),
    cmocka_unit_test(a_software_adapter_is_the_host_cores),
    cmocka_unit_test(queues_serve_two_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
