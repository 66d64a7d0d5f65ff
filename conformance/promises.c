/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/promises.h"

#include <math.h>
#include <stddef.h>

#include "base/text.h"
#include "conformance/changes.h"
#include "ops/result_closeness.h"
#include "plugin/answer.h"

#define LARGEST_COST_NS (UINT64_C(1000000000) * 1000000)
#define ENDLESS_BYTES (UINT64_C(1) << 45)
#define MOST_ROUNDS 2u                  /* of changes, one after the other */
#define TAIL_BYTES 32u
#define KNOWN_REASONS (2 * TM_REASON_CONSTANT - 1)      /* the last of them */
#define LARGE_ELEMENTS (UINT64_C(1) << 26)
#define LARGE_PRODUCT (UINT64_C(1) << 32)
/* Below this a fixed working area may well exceed an operand. */
#define LEAST_EXPANDED_BYTES (UINT64_C(2) << 20)
/* Shapes are log-uniform, so large ones are rare; questions are cheap. */
#define LARGE_TRIES 400
#define LARGE_ENOUGH 6
#define TRIES_A_LIMIT 25
#define LARGEST_ELEMENTS (UINT64_C(1) << 50)

/* ---- one answer ---- */

/* So large that an honest cost is beyond all bounds. */
static bool is_endless(const tm_operation *operation) {
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++)
    if (operation->operands[i].byte_count > ENDLESS_BYTES) return true;
  return false;
}

static bool check_yes(trial *t, const tm_operation *operation, const tm_answer *answer) {
  if (answer->level > TM_LEVEL_NATIVE) return trial_fail(t, "answers with level %u", answer->level);
  if (answer->numerics > TM_NUMERICS_N4) return trial_fail(t, "answers with numerics class %u", answer->numerics);
  if (answer->numerics > operation->worst_numerics)
    return trial_fail(t, "says yes with class N%u where at worst N%u is accepted", answer->numerics, operation->worst_numerics);
  const bool bounded = answer->numerics >= TM_NUMERICS_N1 && answer->numerics <= TM_NUMERICS_N3;
  if (bounded && !(answer->numerics_bound > 0 && isfinite(answer->numerics_bound)))
    return trial_fail(t, "class N%u has the bound %g", answer->numerics, answer->numerics_bound);
  if ((operation->flags & TM_OPERATION_RUN_TO_RUN) != 0 && (answer->numerics_flags & TM_NUMERICS_RUN_TO_RUN) == 0)
    return trial_fail(t, "says yes to equal bits every time without promising them");
  if (answer->cost_ns > LARGEST_COST_NS && !is_endless(operation))      /* 0 says that it is not known */
    return trial_fail(t, "declares a cost of %llu ns", (unsigned long long)answer->cost_ns);
  return answer->launch_ns <= answer->cost_ns || trial_fail(t, "its launch alone costs more than the whole");
}

/* What a host would put right, or refuse a yes for, was never a promise. */
static bool check_sound(trial *t, const tm_operation *operation, const tm_answer *answer) {
  const bool is_yes = answer->level != TM_LEVEL_REFUSED;
  tm_answer sound = *answer;
  tm_answer_make_sound(operation, &sound);
  const bool has_ceiling = answer->numerics >= TM_NUMERICS_N1 && answer->numerics <= TM_NUMERICS_N3;
  const double ceiling = has_ceiling ? tm_closeness_largest_bound(operation, answer) : 0;
  if (is_yes && has_ceiling && answer->numerics_bound > ceiling)
    return trial_fail(t, "class N%u with the bound %g promises nothing: over %g a result of zeros would pass, or nearly",
                      answer->numerics, answer->numerics_bound, ceiling);
  if (is_yes && (sound.numerics != answer->numerics || sound.growth != answer->growth))
    return trial_fail(t, "class N%u with bound %g, growth %u and accumulator 0x%x means nothing", answer->numerics,
                      answer->numerics_bound, answer->growth, answer->accumulator);
  if (is_yes && sound.level == TM_LEVEL_REFUSED)
    return trial_fail(t, "no host takes this yes: it %.*s", (int)sound.text.length, sound.text.data);
  if (sound.change_count != answer->change_count)
    return trial_fail(t, "of the %u changes it proposes one has a kind, an operand or an axis that there is not",
                      answer->change_count);
  if (sound.operand != answer->operand) return trial_fail(t, "answers about operand %u, which there is not", answer->operand);
  return true;
}

static bool check_no(trial *t, const tm_answer *answer) {
  if (answer->reasons == 0) return trial_fail(t, "refuses without a reason");
  if ((answer->reasons & ~KNOWN_REASONS) == 0) return true;
  return trial_fail(t, "refuses for reasons 0x%x, of which some mean nothing", answer->reasons);
}

/* One that moves meanwhile may be found in either; what was announced before the question is in force. */
static void check_epoch(trial *t, subject *s, const tm_answer *answer) {
  const uint64_t announced = atomic_load(&s->announced_epoch);
  const bool was_announced = announced > s->info.epoch;
  if (answer->epoch == 0) return;
  if (!was_announced && answer->epoch != s->info.epoch)
    trial_fail(t, "answers for epoch %llu, the device is in %llu", (unsigned long long)answer->epoch,
               (unsigned long long)s->info.epoch);
  if (was_announced && answer->epoch <= s->info.epoch)
    trial_fail(t, "answers for epoch %llu after it announced epoch %llu", (unsigned long long)answer->epoch,
               (unsigned long long)announced);
}

void promises_check_answer(trial *t, subject *s, const question *q, const tm_answer *answer) {
  asked_operation asked;
  question_asked(q, &asked);
  const tm_operation *operation = &asked.operation;
  if (answer->change_count > TM_MAX_CHANGES) trial_fail(t, "proposes %u changes", answer->change_count);
  if (answer->text.length != 0 && answer->text.data == NULL) trial_fail(t, "its text has a length and no bytes");
  if (answer->text.length > TM_LONGEST_SOUND_TEXT)
    trial_fail(t, "its text has %llu bytes, and none has more than %u", (unsigned long long)answer->text.length, TM_LONGEST_SOUND_TEXT);
  else if (answer->text.data != NULL && !tm_text_is_clean(answer->text.data, answer->text.length))
    trial_fail(t, "its text is not UTF-8 without control characters");
  check_epoch(t, s, answer);
  const tm_status status = atomic_load(&s->query_status);
  const char *meaning = status == TM_ERROR_DEVICE_LOST ? ": it says that the device is lost" : "";
  if (status != TM_OK) trial_fail(t, "query gave %d%s", status, meaning);
  if (answer->level != TM_LEVEL_REFUSED) check_yes(t, operation, answer);
  else check_no(t, answer);
  check_sound(t, operation, answer);
  const tm_answer again = subject_ask(s, operation);
  if (memcmp(&again, answer, sizeof again) != 0) trial_fail(t, "answers the same question differently");
}

/* ---- changes ---- */

/* A private format is only of use if it can be converted to. */
static bool can_be_packed(trial *t, subject *s, const question *q) {
  for (uint32_t i = 0; i < q->c.operation.input_count; i++) {
    asked_operation packing;
    if (q->packed[i].format == TM_FORMAT_NONE) continue;
    question_packing(q, i, &packing);
    if (subject_ask(s, &packing.operation).level == TM_LEVEL_REFUSED)
      return trial_fail(t, "proposes the private format 0x%x for operand %u and refuses to convert to it", q->packed[i].format, i);
  }
  return true;
}

/* One round of changes; a part, and integers in the place of floats, may need a second one. */
static bool follow(trial *t, subject *s, const question *q, const tm_answer *answer, uint32_t rounds, way_out *out_way,
                   uint64_t *inout_unchecked) {
  changes made;
  const changes_result result = changes_make(q, answer, &made);
  if (result == CHANGES_UNKNOWN) (*inout_unchecked)++;
  if (result == CHANGES_IMPOSSIBLE) return trial_fail(t, "proposes %s", made.text);
  if (result != CHANGES_MADE) return false;
  const tm_answer then = subject_ask_question(s, &made.changed);
  if (then.level != TM_LEVEL_REFUSED) {
    if (made.has_last_part && subject_ask_question(s, &made.last_part).level == TM_LEVEL_REFUSED && rounds > 0) {
      const tm_answer last = subject_ask_question(s, &made.last_part);
      if (last.change_count == 0) return trial_fail(t, "accepts the first part of a split that it proposes, but not the last");
    }
    question_copy(&made.changed, &out_way->changed);
    out_way->answer = then;
    out_way->is_found = can_be_packed(t, s, &made.changed);
    return out_way->is_found;
  }
  if (made.is_other_operation && rounds > 0 && then.change_count != 0 && then.change_count <= TM_MAX_CHANGES)
    return follow(t, s, &made.changed, &then, rounds - 1, out_way, inout_unchecked);
  return trial_fail(t, "the %u changes it proposes do not make it acceptable (reasons then: 0x%x)", answer->change_count,
                    then.reasons);
}

void promises_check_changes(trial *t, subject *s, const question *q, const tm_answer *answer, way_out *out_way,
                            uint64_t *inout_unchecked) {
  out_way->is_found = false;
  if (answer->change_count == 0 || answer->change_count > TM_MAX_CHANGES) return;
  (void)follow(t, s, q, answer, MOST_ROUNDS, out_way, inout_unchecked);
}

/* ---- strangers ---- */

static bool must_refuse(trial *t, subject *s, const tm_operation *operation, uint32_t reason, const char *what) {
  tm_answer answer;
  subject_ask_strangely(s, what);
  const tm_status status = subject_query(s, operation, &answer);
  if (status != TM_OK) return trial_fail(t, "query gave %d on %s", status, what);
  if (answer.level != TM_LEVEL_REFUSED) return trial_fail(t, "says yes to %s", what);
  if (reason != 0 && (answer.reasons & reason) == 0)
    return trial_fail(t, "refuses %s for another reason (0x%x)", what, answer.reasons);
  return true;
}

static bool must_repeat(trial *t, subject *s, const tm_operation *operation, const tm_answer *answer, const char *what) {
  subject_ask_strangely(s, what);
  const tm_answer again = subject_ask(s, operation);
  return memcmp(&again, answer, sizeof again) == 0 || trial_fail(t, "answers differently to %s", what);
}

static void check_flags(trial *t, subject *s, const tm_operation *operation, const tm_answer *answer) {
  for (uint32_t bit = 3; bit < 32; bit++) {
    const uint32_t flag = UINT32_C(1) << bit;
    tm_operation other = *operation;
    if (flag == TM_OPERATION_RUN_TO_RUN) continue;
    other.flags |= flag;
    if ((flag & TM_OPERATION_FACTS) != 0) must_repeat(t, s, &other, answer, "an unknown fact");
    else must_refuse(t, s, &other, TM_REASON_DEMAND, "an unknown demand");
  }
}

static void check_numbers(trial *t, subject *s, const tm_operation *operation) {
  const uint32_t versions[] = { 0, operation->version + 1, 77, 0xffffffffu };
  static const uint32_t ops[] = { TM_OP_NONE, 15, 999, TM_OP_FOREIGN, 0xffffffffu };
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    tm_operation other = *operation;
    other.version = versions[i];
    must_refuse(t, s, &other, 0, "an unknown version of the operation");
  }
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    tm_operation other = *operation;
    other.op = ops[i];
    must_refuse(t, s, &other, 0, "an unknown operation");
  }
}

/* From a host of a later minor: what it appended is zero, or means something. */
static void check_longer_structs(trial *t, subject *s, const tm_operation *operation, const tm_answer *answer) {
  struct { tm_operation known; unsigned char tail[TAIL_BYTES]; } later;
  memset(&later, 0, sizeof later);
  later.known = *operation;
  later.known.struct_size = sizeof later;
  must_repeat(t, s, &later.known, answer, "a longer struct whose tail is zero");
  later.tail[TAIL_BYTES - 1] = 1;
  must_refuse(t, s, &later.known, 0, "a longer struct whose tail is not zero");
  unsigned char attributes[sizeof(uint64_t[8]) + TAIL_BYTES] = { 0 };
  tm_operation longer = *operation;
  if (operation->attribute_bytes > sizeof(uint64_t[8])) return;
  if (operation->attribute_bytes != 0) memcpy(attributes, operation->attributes, operation->attribute_bytes);
  longer.attributes = attributes;
  longer.attribute_bytes = operation->attribute_bytes + TAIL_BYTES;
  attributes[longer.attribute_bytes - 1] = 1;
  must_refuse(t, s, &longer, 0, "longer attributes whose tail is not zero");
}

/* An older host's struct ends early, a newer one's late: neither may be written beyond what both know. */
static void check_answer_sizes(trial *t, subject *s, const tm_operation *operation) {
  struct { tm_answer known; unsigned char tail[TAIL_BYTES]; } answer;
  tm_answer *pointer = &answer.known;
  memset(&answer, CASE_GUARD, sizeof answer);
  memset(&answer, 0, offsetof(tm_answer, setup_ns));
  answer.known.struct_size = offsetof(tm_answer, setup_ns);
  subject_ask_strangely(s, "room for a shorter answer");
  (void)SUBJECT_CALL(s, query)(s->backend, s->device_index, &operation, 1, &pointer);
  const unsigned char *bytes = (const unsigned char *)&answer;
  for (size_t i = offsetof(tm_answer, setup_ns); i < sizeof answer; i++)
    if (bytes[i] != CASE_GUARD) {
      trial_fail(t, "writes beyond the size of a shorter answer");
      return;
    }
  if (answer.known.struct_size != offsetof(tm_answer, setup_ns)) trial_fail(t, "changes struct_size of the answer");
}

/* A host checks attributes before it asks, so any answer will do; a crash will not. */
static void check_garbage_attributes(subject *s, const tm_operation *operation, uint64_t seed) {
  unsigned char attributes[sizeof(uint64_t[8])];
  uint64_t state = seed;
  if (operation->attribute_bytes == 0 || operation->attribute_bytes > sizeof attributes) return;
  subject_ask_strangely(s, "random attribute bytes");
  for (int round = 0; round < 16; round++) {
    for (size_t i = 0; i < sizeof attributes; i++) attributes[i] = (unsigned char)(random_u64(&state) >> 32);
    tm_operation other = *operation;
    other.attributes = attributes;
    (void)subject_ask(s, &other);
  }
}

/* Questions come in batches; an answer does not depend on its neighbours. */
static void check_batch(trial *t, subject *s, const tm_operation *operation, const tm_answer *answer) {
  tm_operation stranger = *operation;
  stranger.op = 999;
  const tm_operation *operations[] = { &stranger, operation, operation, &stranger, operation };
  enum { COUNT = sizeof operations / sizeof operations[0] };
  tm_answer answers[COUNT];
  tm_answer *pointers[COUNT];
  memset(answers, 0, sizeof answers);
  for (int i = 0; i < COUNT; i++) {
    answers[i].struct_size = sizeof answers[i];
    answers[i].operand = TM_NO_OPERAND;
    pointers[i] = &answers[i];
  }
  subject_ask_strangely(s, "others in one batch");
  if (SUBJECT_CALL(s, query)(s->backend, s->device_index, operations, COUNT, pointers) != TM_OK)
    trial_fail(t, "refuses a batch of questions");
  for (int i = 0; i < COUNT; i++)
    if (operations[i] == operation ? memcmp(&answers[i], answer, sizeof *answer) != 0 : answers[i].level != TM_LEVEL_REFUSED)
      trial_fail(t, "answers differently in a batch");
  if (SUBJECT_CALL(s, query)(s->backend, s->device_index, operations, 0, pointers) != TM_OK)
    trial_fail(t, "refuses an empty batch");
}

void promises_check_strangers(trial *t, subject *s, const question *q, const tm_answer *answer, uint64_t seed) {
  const tm_operation *operation = &q->c.operation;
  check_flags(t, s, operation, answer);
  check_numbers(t, s, operation);
  check_longer_structs(t, s, operation, answer);
  check_answer_sizes(t, s, operation);
  check_garbage_attributes(s, operation, seed);
  check_batch(t, s, operation, answer);
  subject_work_on(s, q);
}

/* ---- scale ---- */

/* Bytes that a narrow input would take as f32: what a native kernel never writes down. */
static uint64_t expanded_bytes(const kernel_case *c) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < c->operation.input_count; i++) {
    const tm_operand *operand = &c->operands[i];
    const tm_format_info *info = tm_format_find(operand->format);
    const bool is_narrow =
        info->block_bytes < 4 * info->block_elements && (info->kind == TM_KIND_FLOAT || info->kind == TM_KIND_BLOCK);
    if (is_narrow && operand->element_count * sizeof(float) < least) least = operand->element_count * sizeof(float);
  }
  return least == UINT64_MAX ? 0 : least;
}

/* What the same shapes need in f32, where nothing is to be expanded: sums, scores and the like.  0 if that is refused. */
static uint64_t workspace_in_f32(subject *s, const question *q) {
  question plain;
  question_copy(q, &plain);
  const uint32_t count = plain.c.operation.input_count;
  for (uint32_t i = 0; i < count; i++) {
    tm_operand *operand = &plain.c.operands[i];
    if (tm_format_find(operand->format)->kind != TM_KIND_FLOAT && tm_format_find(operand->format)->kind != TM_KIND_BLOCK) continue;
    if (tm_operand_contiguous(TM_FORMAT_F32, operand->rank, operand->dims, operand, NULL) != TM_OK) return 0;
    operand->alignment = q->c.operands[i].alignment;
  }
  tm_operand *y = &plain.c.operands[count];
  *y = (tm_operand){ .format = TM_FORMAT_NONE };
  if (tm_op_infer_outputs(&plain.c.operation, y, NULL) != TM_OK) return 0;
  y->alignment = q->c.operands[count].alignment;
  tm_op_normalize(&plain.c.operation, plain.c.operands);
  if (tm_op_check(&plain.c.operation, NULL) != TM_OK) return 0;
  const tm_answer answer = subject_ask(s, &plain.c.operation);
  return answer.level == TM_LEVEL_REFUSED ? 0 : answer.workspace_bytes;
}

static bool is_product(uint32_t op) { return op == TM_OP_MATMUL || op == TM_OP_MATMUL_SCALED; }

/* More work of each kind, and much more of one. */
static bool is_much_more(const kernel_case *large, const kernel_case *small) {
  const tm_op_row *row = tm_op_find(large->operation.op);
  tm_work more, less;
  row->work(&large->operation, &more);
  row->work(&small->operation, &less);
  const uint64_t more_bytes = more.read_bytes + more.written_bytes, less_bytes = less.read_bytes + less.written_bytes;
  return more.flops >= less.flops && more_bytes > UINT64_C(1) << 22 && more_bytes / 16 > less_bytes;
}

static void check_cost(trial *t, const question *small, const tm_answer *answer, const question *large, const tm_answer *then) {
  const bool is_unknown = answer->cost_ns == 0 || then->cost_ns == 0;
  if (is_unknown || !is_much_more(&large->c, &small->c) || then->cost_ns >= answer->cost_ns / 2) return;
  trial_fail(t, "declares %llu ns for this and %llu ns for sixteen times as much", (unsigned long long)answer->cost_ns,
             (unsigned long long)then->cost_ns);
}

static void check_expansion(trial *t, subject *s, const question *large, const tm_answer *answer) {
  const uint64_t expanded = expanded_bytes(&large->c);
  if (answer->level != TM_LEVEL_NATIVE || expanded < LEAST_EXPANDED_BYTES || answer->workspace_bytes < expanded) return;
  if (answer->workspace_bytes - expanded < workspace_in_f32(s, large)) return;
  trial_fail(t, "claims to be native with a workspace of %llu bytes; the operand would take %llu expanded",
             (unsigned long long)answer->workspace_bytes, (unsigned long long)expanded);
}

static bool is_large(const kernel_case *c, const combination *which) {
  if (expanded_bytes(c) != 0) return expanded_bytes(c) >= LEAST_EXPANDED_BYTES;
  return c->operands[0].byte_count > LEAST_EXPANDED_BYTES && c->operands[which->inputs - 1].byte_count > LEAST_EXPANDED_BYTES / 4;
}

/* Operands grow with the limit as fast as the elements, or as a root of them: it rises until they are large. */
void promises_check_scale(trial *t, subject *s, const combination *which, const question *small, const tm_answer *answer,
                          uint64_t seed) {
  uint64_t state = seed;
  uint64_t elements = is_product(which->row->op) ? LARGE_PRODUCT : LARGE_ELEMENTS;
  for (int i = 0, large_count = 0; i < LARGE_TRIES && large_count < LARGE_ENOUGH && !t->failed; i++) {
    question q;
    if (i % TRIES_A_LIMIT == TRIES_A_LIMIT - 1 && large_count == 0 && elements < LARGEST_ELEMENTS) elements *= 8;
    if (!question_make_plain(&q, which, elements, random_u64(&state))) continue;
    const tm_answer large = subject_ask(s, &q.c.operation);
    if (large.level == TM_LEVEL_REFUSED) continue;
    check_cost(t, small, answer, &q, &large);
    large_count += is_large(&q.c, which);
    check_expansion(t, s, &q, &large);
  }
}
