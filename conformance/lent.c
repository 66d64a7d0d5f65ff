/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/lent.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* A place comes round again after so many calls, of which a few may be under way. */
#define PLACES 64u
#define PLACE_BYTES ((size_t)16 << 10)
#define UNIT 16u
#define QUERY_TURN 4u                   /* of so many questions one is lent: they are many, and short */

typedef struct loan {
  unsigned char    *bytes;      /* NULL: there was no memory, and the structs are the caller's own */
  size_t            used;
  size_t            capacity;
  _Atomic uint32_t *taken;      /* of a place; NULL: pages of its own */
} loan;

static _Thread_local const tm_accelerator_backend_plugin *of_thread;
static const tm_accelerator_backend_plugin *of_process;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned char *places;
static _Atomic uint32_t taken[PLACES];
static _Atomic uint32_t turn;
static _Atomic uint32_t questions;
static last_call *watched;

static const tm_accelerator_backend_plugin *reached(void) { return of_thread != NULL ? of_thread : of_process; }

/* There from the start, so that no call is the one that costs the process a page. */
static void make_places(void) {
  void *pages = mmap(NULL, PLACES * PLACE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages, PLACES * PLACE_BYTES, PROT_NONE) != 0) return;
  places = pages;
}

static size_t rounded(uint64_t bytes) { return (size_t)((bytes + UNIT - 1) / UNIT * UNIT); }

static loan take_pages(size_t bytes) {
  void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return (loan){ .bytes = pages == MAP_FAILED ? NULL : pages, .capacity = bytes };
}

static loan take(size_t bytes) {
  (void)pthread_once(&once, make_places);
  if (places == NULL || bytes > PLACE_BYTES) return take_pages(bytes);
  for (uint32_t tries = 0; tries < PLACES; tries++) {
    const uint32_t place = atomic_fetch_add(&turn, 1) % PLACES;
    uint32_t is_free = 0;
    if (!atomic_compare_exchange_strong(&taken[place], &is_free, 1)) continue;
    unsigned char *at = places + place * PLACE_BYTES;
    if (mprotect(at, PLACE_BYTES, PROT_READ | PROT_WRITE) == 0) return (loan){ .bytes = at, .capacity = PLACE_BYTES, .taken = &taken[place] };
    atomic_store(&taken[place], 0);
  }
  return take_pages(bytes);
}

static void give_back(loan *l) {
  if (l->bytes == NULL) return;
  if (l->taken == NULL) {
    (void)munmap(l->bytes, l->capacity);
    return;
  }
  (void)mprotect(l->bytes, PLACE_BYTES, PROT_NONE);
  atomic_store(l->taken, 0);
}

/* A copy, or what it is a copy of where there is no room. */
static void *lend(loan *l, const void *data, uint64_t bytes) {
  const size_t size = rounded(bytes);
  if (l->bytes == NULL || data == NULL || size > l->capacity - l->used) return (void *)(uintptr_t)data;
  void *at = l->bytes + l->used;
  memcpy(at, data, (size_t)bytes);
  l->used += size;
  return at;
}

static void bring_back(void *to, const void *lent, uint64_t bytes) {
  if (to != NULL && to != lent) memcpy(to, lent, (size_t)bytes);
}

/* ---- operations ---- */

static uint64_t operand_bytes(const tm_operation *operation) {
  return ((uint64_t)operation->input_count + operation->output_count) * sizeof(tm_operand);
}

static size_t room_for(const tm_operation *operation) {
  return rounded(operation->struct_size) + rounded(operand_bytes(operation)) + rounded(operation->attribute_bytes);
}

static const tm_operation *lend_operation(loan *l, const tm_operation *operation) {
  tm_operation *lent = lend(l, operation, operation->struct_size);
  if (lent == operation) return operation;
  lent->operands = lend(l, operation->operands, operand_bytes(operation));
  lent->attributes = lend(l, operation->attributes, operation->attribute_bytes);
  return lent;
}

/* What it was given to read is as it was. */
static void expect(const void *given, const void *lent, uint64_t bytes, const char *call) {
  if (given != NULL && given != lent && memcmp(given, lent, (size_t)bytes) != 0)
    last_call_misuse(watched, "%s: writes to what it is given to read", call);
}

/* The pointers of the copy are its own. */
static void expect_operation(const tm_operation *given, const tm_operation *lent, const char *call) {
  tm_operation own = *given;
  if (lent == given) return;
  own.operands = lent->operands;
  own.attributes = lent->attributes;
  expect(&own, lent, sizeof own, call);
  expect((const char *)given + sizeof own, (const char *)lent + sizeof own, given->struct_size - sizeof own, call);
}

static void expect_all_of(const tm_operation *given, const tm_operation *lent, const tm_operand *operands, const void *attributes,
                          const char *call) {
  expect_operation(given, lent, call);
  expect(given->operands, operands, operand_bytes(given), call);
  expect(given->attributes, attributes, given->attribute_bytes, call);
}

/* Who writes beyond a shorter answer is to be seen where the caller looks. */
static bool are_whole(tm_answer *const *answers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (answers[i]->struct_size < sizeof *answers[i]) return false;
  return count != 0;
}

typedef struct batch {
  const tm_operation *const *given;
  tm_answer *const *out;
  uint32_t          count;
} batch;

static size_t room_for_batch(const batch *b) {
  size_t room = 2 * rounded(b->count * sizeof(void *));
  for (uint32_t i = 0; i < b->count; i++) room += room_for(b->given[i]) + rounded(b->out[i]->struct_size);
  return room;
}

/* The lists of pointers, then the answers, then the operations. */
static tm_status query_lent(tm_backend *backend, uint32_t index, const batch *b, loan *l) {
  const size_t list_bytes = b->count * sizeof(void *);
  const tm_operation **asked = lend(l, b->given, list_bytes);
  tm_answer **answers = lend(l, b->out, list_bytes);
  const unsigned char *at = l->bytes + l->used;
  for (uint32_t i = 0; i < b->count; i++) answers[i] = lend(l, b->out[i], b->out[i]->struct_size);
  for (uint32_t i = 0; i < b->count; i++) asked[i] = lend_operation(l, b->given[i]);
  const tm_operation *first = asked[0];
  const tm_operand *operands = first->operands;
  const void *attributes = first->attributes;
  const tm_status status = reached()->query(backend, index, asked, b->count, answers);
  for (uint32_t i = 0; i < b->count; i++) {
    const uint32_t bytes = b->out[i]->struct_size;
    bring_back(b->out[i], at, bytes);
    at += rounded(bytes);
  }
  expect_all_of(b->given[0], first, operands, attributes, "query");
  return status;
}

static tm_status query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                       tm_answer *const *out_answers) {
  const batch b = { operations, out_answers, count };
  const bool is_turn = atomic_fetch_add(&questions, 1) % QUERY_TURN == 0;
  if (!is_turn || !are_whole(out_answers, count)) return reached()->query(backend, index, operations, count, out_answers);
  loan l = take(room_for_batch(&b));
  if (l.bytes == NULL) return reached()->query(backend, index, operations, count, out_answers);
  const tm_status status = query_lent(backend, index, &b, &l);
  give_back(&l);
  return status;
}

static tm_status prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  loan l = take(room_for(operation) + rounded(answer->struct_size) + rounded(sizeof *out_kernel));
  tm_kernel **kernel = lend(&l, out_kernel, sizeof *out_kernel);
  const tm_operation *asked = lend_operation(&l, operation);
  const tm_operand *operands = asked->operands;
  const void *attributes = asked->attributes;
  const tm_answer *given = lend(&l, answer, answer->struct_size);
  const tm_status status = reached()->prepare(device, asked, given, kernel);
  bring_back(out_kernel, kernel, sizeof *out_kernel);
  expect_all_of(operation, asked, operands, attributes, "prepare");
  expect(answer, given, answer->struct_size, "prepare");
  give_back(&l);
  return status;
}

/* ---- work ---- */

static tm_status launch(tm_device *device, const tm_launch *what, tm_ticket *out_ticket) {
  const uint64_t binding_bytes = what->binding_count * sizeof(tm_binding), wait_bytes = what->wait_count * sizeof(tm_ticket);
  loan l = take(rounded(what->struct_size) + rounded(binding_bytes) + rounded(wait_bytes) + rounded(sizeof *out_ticket));
  tm_launch *lent = lend(&l, what, what->struct_size);
  tm_ticket *ticket = lend(&l, out_ticket, sizeof *out_ticket);
  const tm_binding *bindings = lend(&l, what->bindings, binding_bytes);
  const tm_ticket *waits = lend(&l, what->waits, wait_bytes);
  if (lent != what) lent->bindings = bindings;
  if (lent != what) lent->waits = waits;
  const tm_status status = reached()->launch(device, lent, ticket);
  bring_back(out_ticket, ticket, sizeof *out_ticket);
  expect(what->bindings, bindings, binding_bytes, "launch");
  expect(what->waits, waits, wait_bytes, "launch");
  give_back(&l);
  return status;
}

typedef tm_status (*transfer_fn)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);

static tm_status move(transfer_fn function, tm_device *device, const tm_transfer *what, tm_ticket *out_ticket) {
  const uint64_t wait_bytes = what->wait_count * sizeof(tm_ticket);
  loan l = take(rounded(what->struct_size) + rounded(wait_bytes) + rounded(sizeof *out_ticket));
  tm_transfer *lent = lend(&l, what, what->struct_size);
  tm_ticket *ticket = lend(&l, out_ticket, sizeof *out_ticket);
  if (lent != what) lent->waits = lend(&l, what->waits, wait_bytes);
  const tm_status status = function(device, lent, ticket);
  bring_back(out_ticket, ticket, sizeof *out_ticket);
  give_back(&l);
  return status;
}

static tm_status upload(tm_device *device, const tm_transfer *what, tm_ticket *out_ticket) {
  return move(reached()->upload, device, what, out_ticket);
}

static tm_status download(tm_device *device, const tm_transfer *what, tm_ticket *out_ticket) {
  return move(reached()->download, device, what, out_ticket);
}

static tm_status copy(tm_device *device, const tm_transfer *what, tm_ticket *out_ticket) {
  return move(reached()->copy, device, what, out_ticket);
}

static tm_status wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  if (count == 0) return reached()->wait(device, tickets, count, timeout_ns);
  loan l = take(rounded(count * sizeof *tickets));
  const tm_status status = reached()->wait(device, lend(&l, tickets, count * sizeof *tickets), count, timeout_ns);
  give_back(&l);
  return status;
}

static tm_status device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const uint32_t bytes = out_info->struct_size;
  if (bytes < sizeof *out_info) return reached()->device_info(backend, index, out_info);
  loan l = take(rounded(bytes));
  tm_device_info *info = lend(&l, out_info, bytes);
  const tm_status status = reached()->device_info(backend, index, info);
  bring_back(out_info, info, bytes);
  give_back(&l);
  return status;
}

void lent_wrap(const tm_accelerator_backend_plugin *own, tm_accelerator_backend_plugin *out_table) {
  *out_table = *own;
  out_table->device_info = device_info;
  out_table->query = query;
  out_table->prepare = prepare;
  out_table->upload = upload;
  out_table->download = download;
  out_table->copy = copy;
  out_table->launch = launch;
  out_table->wait = wait;
}

void lent_through(const tm_accelerator_backend_plugin *own) { of_thread = own; }

void lent_everywhere(const tm_accelerator_backend_plugin *own) { of_process = own; }

/* ---- who comes back ---- */

/* The default action, which is back in its place, ends the process as the instruction is tried again. */
static void note_touch(int number, siginfo_t *info, void *unused) {
  const uintptr_t at = (uintptr_t)info->si_addr, begin = (uintptr_t)places;
  (void)unused;
  if (info->si_code <= 0) (void)raise(number);                  /* sent, not done: nothing is tried again */
  if (places != NULL && info->si_code > 0 && at >= begin && at - begin < PLACES * PLACE_BYTES)
    atomic_store(&watched->has_kept, 1);
}

void lent_watch(last_call *calls) {
  struct sigaction action = { .sa_sigaction = note_touch, .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_NODEFER) };
  sigemptyset(&action.sa_mask);
  watched = calls;
  (void)sigaction(SIGSEGV, &action, NULL);
  (void)sigaction(SIGBUS, &action, NULL);
}
