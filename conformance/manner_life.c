/* SPDX-License-Identifier: Apache-2.0 */
/* Manners of opening and closing. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "conformance/errand.h"
#include "conformance/manner.h"
#include "base/text.h"
#include "plugin/answer.h"
#include "plugin/description.h"

#define LIVES 3
#define QUESTIONS 4u
#define MOST_ALLOCATIONS 64u
#define MOST_DEVICES 256u
#define SHOWN_BYTES 64u
#define ELEMENTS 1000u
#define CLOSED_SHARE 4u                 /* of the time that is left, for questions before it is opened */
#define QUESTION_TEXT 160u

/* ---- life cycle ---- */

/* Texts may lie elsewhere, and epochs go on. */
static bool is_same_answer(const tm_answer *a, const tm_answer *b) {
  tm_answer x = *a, y = *b;
  x.text = y.text = (tm_string){ NULL, 0 };
  x.epoch = y.epoch = 0;
  return memcmp(&x, &y, sizeof x) == 0;
}

/* Memory that lies elsewhere in each life. */
static void shift_memory(void **blocks, int life) {
  for (int i = 0; i <= life; i++) blocks[i] = malloc((size_t)1000 * (size_t)(i + 1) + 8u * (size_t)life);
}

/* One question of each combination. */
typedef struct interview {
  manner_run *run;
  uint64_t   *closed;           /* hashes of what it said before it was opened; NULL: there was no memory */
  uint32_t    count;            /* of them */
  uint64_t    epoch;            /* announced by then */
} interview;

static uint64_t answer_hash(subject *s, const combination *which, uint64_t seed, question *q) {
  if (!question_make_plain(q, which, ELEMENTS, seed)) return 0;
  tm_answer answer = subject_ask_question(s, q);
  answer.text = (tm_string){ NULL, 0 };
  answer.epoch = 0;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < sizeof answer; i++) hash = (hash ^ ((const unsigned char *)&answer)[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static void ask_closed(void *context, subject *s) {
  interview *view = context;
  const combination_list *list = s->combinations;
  const uint64_t now_ns = tm_now_ns(), end_ns = view->run->end_ns;
  const uint64_t until_ns = end_ns == 0 ? UINT64_MAX : end_ns > now_ns ? now_ns + (end_ns - now_ns) / CLOSED_SHARE : now_ns;
  if (list == NULL || view->closed != NULL) return;
  view->closed = calloc((size_t)list->count + 1, sizeof *view->closed);
  for (uint32_t i = 0; view->closed != NULL && i < list->count && tm_now_ns() < until_ns; i++) {
    question q;
    view->closed[view->count++] = answer_hash(s, &list->items[i], view->run->seed, &q);
  }
  view->epoch = atomic_load(&s->announced_epoch);
}

/* A device need not be open to be asked, and says what it says of an open one. */
static void ask_open(interview *view, subject *s) {
  char what[QUESTION_TEXT];
  for (uint32_t i = 0; i < view->count && !view->run->t.failed; i++) {
    question q;
    if (view->closed[i] == answer_hash(s, &s->combinations->items[i], view->run->seed, &q)) continue;
    if (atomic_load(&s->announced_epoch) != view->epoch) return;
    question_describe(&q, what, sizeof what);
    trial_fail(&view->run->t, "answers differently before it is opened and after: %s", what);
  }
}

static bool open_and_compare(manner_run *run, subject *s, bool is_first) {
  interview view = { .run = run };
  subject_options options = *run->options;
  if (is_first) options.before_open = ask_closed;
  options.context = &view;
  const tm_status status = subject_open(s, &options);
  if (status == TM_OK) ask_open(&view, s);
  else trial_fail(&run->t, "the device does not open: status %d (%s)", status, s->text);
  free(view.closed);
  return status == TM_OK;
}

static void live(manner_run *run, tm_answer *answers, bool is_first) {
  subject s;
  if (!open_and_compare(run, &s, is_first)) return;
  for (uint32_t i = 0; i < QUESTIONS && !run->t.failed; i++) {
    question q;
    tm_answer answer;
    if (!errand_find(&s, i, run->seed, &q, &answer)) break;
    if (is_first) answers[i] = answer;
    else if (!is_same_answer(&answer, &answers[i]))
      trial_fail(&run->t, "answers the same question differently after it was opened again");
  }
  subject_close(&s);
  const uint64_t kept = atomic_load(&s.memory.used_bytes);
  if (kept != 0) trial_fail(&run->t, "keeps %llu bytes of the host's memory after shutdown", (unsigned long long)kept);
}

void manner_check_life_cycle(manner_run *run) {
  tm_answer answers[QUESTIONS];
  memset(answers, 0, sizeof answers);
  for (int i = 0; i < LIVES && !run->t.failed && !manner_ends_early(run, (uint64_t)i, LIVES, "lives"); i++) {
    void *blocks[LIVES] = { NULL };
    shift_memory(blocks, i);
    live(run, answers, i == 0);
    for (int k = 0; k < LIVES; k++) free(blocks[k]);
  }
}

/* ---- description ---- */

static void check_short_info(manner_run *run, subject *s) {
  struct { tm_device_info info; unsigned char tail[32]; } room;
  const size_t known = offsetof(tm_device_info, queue_count);
  memset(&room, CASE_GUARD, sizeof room);
  memset(&room, 0, known);
  room.info.struct_size = (uint32_t)known;
  (void)SUBJECT_CALL(s, device_info)(s->backend, s->device_index, &room.info);
  const unsigned char *bytes = (const unsigned char *)&room;
  for (size_t i = known; i < sizeof room; i++)
    if (bytes[i] != CASE_GUARD) {
      trial_fail(&run->t, "device_info writes beyond the size of a shorter struct");
      return;
    }
  if (room.info.struct_size != known) trial_fail(&run->t, "device_info changes struct_size");
}

static void check_end(manner_run *run, subject *s) {
  tm_device_info info = { .struct_size = sizeof info };
  uint32_t count = 0;
  while (count < MOST_DEVICES && SUBJECT_CALL(s, device_info)(s->backend, count, &info) == TM_OK) count++;
  if (count == MOST_DEVICES) trial_fail(&run->t, "its list of devices has no end: there are %u and more", count);
  const uint32_t beyond[] = { count, count + 1, 0x7fffffffu, 0xffffffffu };
  for (size_t i = 0; count < MOST_DEVICES && i < sizeof beyond / sizeof beyond[0]; i++)
    if (SUBJECT_CALL(s, device_info)(s->backend, beyond[i], &info) != TM_END)
      trial_fail(&run->t, "has %u devices and does not say TM_END for number %u", count, beyond[i]);
}

/* Whoever keeps something of a device finds it again by this. */
static void check_uuids(manner_run *run, subject *s) {
  static const tm_identity none = { { 0 } };
  for (uint32_t i = 0; i < MOST_DEVICES && memcmp(&s->info.uuid, &none, sizeof none) != 0; i++) {
    tm_device_info other = { .struct_size = sizeof other };
    if (SUBJECT_CALL(s, device_info)(s->backend, i, &other) != TM_OK) return;
    if (i != s->device_index && memcmp(&other.uuid, &s->info.uuid, sizeof other.uuid) == 0)
      trial_fail(&run->t, "has the uuid of its device %u", i);
  }
}

/* Says what there is in its place, as far as it can be read. */
static void check_text(manner_run *run, tm_string text, const char *what) {
  char shown[SHOWN_BYTES];
  if (tm_description_is_text(text)) return;
  if (!tm_description_is_readable(text)) {
    trial_fail(&run->t, "%s is no text: %llu bytes at %p", what, (unsigned long long)text.length, (const void *)text.data);
    return;
  }
  (void)tm_text_escape(text.data, text.length, shown, sizeof shown);
  trial_fail(&run->t, "%s is no text: \"%s\" is " TM_NO_DESCRIPTION, what, shown);
}

static void check_texts(manner_run *run, const tm_device_info *info) {
  check_text(run, info->name, "its name");
  check_text(run, info->driver_version, "its driver's version");
  if (info->open_ns > TM_LARGEST_COST_NS) trial_fail(&run->t, "declares %llu ns for being opened", (unsigned long long)info->open_ns);
}

static void check_own_texts(manner_run *run) {
  const tm_plugin_header *header = run->options->header;
  const tm_accelerator_backend_plugin *table = run->options->table;
  if (header != NULL) {
    check_text(run, header->version, "its version");
    check_text(run, header->vendor, "its vendor");
    check_text(run, header->build_id, "its build id");
  }
  for (uint32_t i = 0; i < table->option_count; i++) {
    check_text(run, table->options[i]->default_value, "the default of an option");
    check_text(run, table->options[i]->help, "the help of an option");
  }
}

static void check_space(manner_run *run, const tm_memory_space *space) {
  const uint32_t alignment = space->alignment;
  if ((alignment & (alignment - 1)) != 0) trial_fail(&run->t, "a memory is aligned to %u, which is no power of two", alignment);
  if (space->offset_granule == 0 || space->store_granule == 0) trial_fail(&run->t, "a memory has a granule of 0, where 1 is the least");
  check_text(run, space->name, "the name of a memory");
  const tm_identity host = TM_HOST_MEMORY;
  const bool is_host = memcmp(&space->identity, &host, sizeof host) == 0;
  if ((space->flags & TM_MEMORY_HOST_POINTER) != 0 && !is_host)
    trial_fail(&run->t, "a memory whose buffers are host addresses does not have the identity of the host's memory");
}

/* The first one may be written over by the second. */
static void check_again(manner_run *run, subject *s) {
  tm_device_info again = { .struct_size = sizeof again };
  tm_device_info first = { .struct_size = sizeof first };
  const bool has_first = SUBJECT_CALL(s, device_info)(s->backend, s->device_index, &first) == TM_OK;
  const uint64_t hash = has_first ? subject_description_hash(&first) : 0;
  if (SUBJECT_CALL(s, device_info)(s->backend, s->device_index, &again) != TM_OK) {
    trial_fail(&run->t, "device_info fails for a device that is open");
    return;
  }
  if (memcmp(&again.uuid, &s->info.uuid, sizeof again.uuid) != 0 || again.queue_count != s->info.queue_count ||
      again.memory_count != s->info.memory_count || again.flags != s->info.flags || (has_first && subject_description_hash(&again) != hash))
    trial_fail(&run->t, "describes the same device differently the second time");
}

void manner_check_description(manner_run *run) {
  subject s;
  if (!manner_open(run, &s, 0)) return;
  check_short_info(run, &s);
  check_end(run, &s);
  check_own_texts(run);
  check_texts(run, &s.info);
  check_again(run, &s);
  check_uuids(run, &s);
  for (uint32_t i = 0; i < s.info.memory_count && !run->t.failed; i++) {
    if (s.info.memories[i] == NULL) trial_fail(&run->t, "its memory %u is NULL", i);
    else check_space(run, s.info.memories[i]);
  }
  subject_close(&s);
}

/* ---- a host without memory ---- */

void manner_check_memory_shortage(manner_run *run) {
  subject s;
  tm_status status = TM_ERROR_NO_MEMORY;
  for (uint64_t left = 0; left < MOST_ALLOCATIONS && status != TM_OK && !run->t.failed; left++) {
    if (manner_ends_early(run, left, MOST_ALLOCATIONS, "allocations")) break;
    subject_options options = *run->options;
    options.allocations_plus_one = left + 1;
    status = subject_open(&s, &options);
    if (status == TM_OK) {
      atomic_store(&s.allocations_left, UINT64_MAX);
      subject_close(&s);
    } else if (status != TM_ERROR_NO_MEMORY) {
      trial_fail(&run->t, "opening gave %d when the host had no memory (%s)", status, s.text);
    }
    const uint64_t kept = atomic_load(&s.memory.used_bytes);
    if (kept != 0)
      trial_fail(&run->t, "loses %llu bytes when the host runs out of memory while it opens", (unsigned long long)kept);
  }
}
