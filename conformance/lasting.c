/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/lasting.h"

#include "base/clock.h"
#include "conformance/size_walk.h"

#define BATCH 4u

static uint64_t hash_of(const tm_answer *answer) {
  tm_answer plain = *answer;
  uint64_t hash = 1;
  plain.text = (tm_string){ NULL, 0 };          /* may lie elsewhere */
  plain.epoch = 0;
  const unsigned char *bytes = (const unsigned char *)&plain;
  for (size_t i = 0; i < sizeof plain; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t epoch_of(const subject *s, const tm_answer *answer) { return answer->epoch != 0 ? answer->epoch : s->info.epoch; }

/* A host of other lanes may be told another cost. */
static uint32_t form_of(const subject *s) { return s->pool != NULL; }

void lasting_note(journal_entry *entry, const subject *s, uint32_t number, const tm_answer *answer) {
  journal_promise *promise = &entry->promises[form_of(s)];
  if (promise->number_plus_one == 0)
    *promise = (journal_promise){ .number_plus_one = number + 1, .epoch = epoch_of(s, answer), .hash = hash_of(answer) };
}

typedef struct batch {
  uint32_t        count;
  uint32_t        indices[BATCH];
  question        questions[BATCH];
  asked_operation asked[BATCH];
  tm_answer       answers[BATCH];
} batch;

static void tell(subject *s, const journal_promise *promise, const question *q, const tm_answer *answer) {
  char what[120];
  question_describe(q, what, sizeof what);
  last_call_misuse(s->calls, "query: %s what it said yes to first, in the same epoch: case %u: %s",
                   answer->level == TM_LEVEL_REFUSED ? "refuses at the end" : "answers otherwise at the end", promise->number_plus_one - 1, what);
}

static void ask(const worker *w, subject *s, batch *b) {
  const tm_operation *operations[BATCH];
  tm_answer *pointers[BATCH];
  for (uint32_t i = 0; i < b->count; i++) {
    question_asked(&b->questions[i], &b->asked[i]);
    operations[i] = &b->asked[i].operation;
    b->answers[i] = (tm_answer){ .struct_size = sizeof b->answers[i], .operand = TM_NO_OPERAND };
    pointers[i] = &b->answers[i];
  }
  if (b->count == 0) return;
  subject_work_on(s, &b->questions[0]);
  const tm_status status = SUBJECT_CALL(s, query)(s->backend, s->device_index, operations, b->count, pointers);
  if (status != TM_OK) last_call_misuse(s->calls, "query: gave %d for %u questions at once", status, b->count);
  for (uint32_t i = 0; i < b->count && status == TM_OK; i++) {
    const journal_promise *promise = &w->journal->entries[b->indices[i]].promises[form_of(s)];
    if (promise->epoch == epoch_of(s, &b->answers[i]) && promise->hash != hash_of(&b->answers[i]))
      tell(s, promise, &b->questions[i], &b->answers[i]);
  }
  b->count = 0;
}

/* Begins somewhere else each time, as there may be no time for all. */
void lasting_check(const worker *w, subject *s, uint64_t end_ns) {
  const uint32_t count = w->list->count, begin = count == 0 ? 0 : (uint32_t)(tm_now_ns() / 1000 % count);
  batch *b = calloc(1, sizeof *b);
  for (uint32_t i = 0; b != NULL && i < count && (end_ns == 0 || tm_now_ns() < end_ns); i++) {
    const uint32_t index = (begin + i) % count;
    const uint32_t number_plus_one = w->journal->entries[index].promises[form_of(s)].number_plus_one;
    if (number_plus_one == 0 || !worker_question(w, index, number_plus_one - 1, &b->questions[b->count])) continue;
    b->indices[b->count++] = index;
    if (b->count == BATCH) ask(w, s, b);
  }
  if (b != NULL) ask(w, s, b);
  free(b);
}
