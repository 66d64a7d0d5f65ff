/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/diff_content.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "jobs/content_group.h"
#include "jobs/name_affinity.h"
#include "jobs/tensor_tiles.h"
#include "jobs/transposed_view.h"

/* So few elements are equal by chance. */
#define FEW_ELEMENTS 8u
#define FIRST_SAMPLES 4u

typedef struct search {
  const tm_diff_pairing *pairing;
  tm_content_digester   *digester;
  tm_diff_likeness       likeness;
  uint32_t               flipped;       /* tm_diff_round.side */
  uint32_t               rounded_to;    /* tm_diff_round.format */
  uint32_t               sample_count;  /* of TRANSPOSE: elements that are looked at, each a read of its own */
  bool                   is_for_moved;  /* among pairs of one name, for their content elsewhere */
  tm_content_groups      groups;
  tm_diff_pairs          pairs;         /* in the order in which they are found */
} search;

static const tm_archive_tensor *tensor_at(const search *s, uint32_t side, uint64_t tensor) {
  return tm_archive_tensor_at(s->pairing->sides[side].archive, tensor);
}

static const tm_archive_tensor *tensor_of(const search *s, const tm_content_entry *entry) { return tensor_at(s, entry->side, entry->tensor); }

static uint64_t hash_words(const uint64_t *words, uint64_t count) {
  tm_content_hash hash = { 0, 0 };
  tm_content_hash_add(&hash, count, words, count * sizeof *words);
  return hash.low;
}

static uint64_t hash_text(const char *text) {
  tm_content_hash hash = { 0, 0 };
  tm_content_hash_add(&hash, 0, text, strlen(text));
  return hash.low;
}

/* ---- who can be equal to whom ---- */

/* Floats of 8 bits and fewer mostly come with scales of their own. */
static bool can_be_rounded(const search *s, uint32_t side, const tm_format_info *info) {
  if (side == s->flipped) return info->format == s->rounded_to;
  return info->kind == TM_KIND_FLOAT && info->has_arithmetic && info->block_bytes >= 2 && info->format != s->rounded_to;
}

static bool is_eligible(const search *s, uint32_t side, const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  if ((tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0) return false;
  if (s->likeness == TM_DIFF_LIKE_BYTES) return tensor->bytes != 0 || tensor->element_count == 0;
  if (info == NULL || tensor->element_count == 0) return false;
  if (s->likeness == TM_DIFF_LIKE_ROUNDED) return can_be_rounded(s, side, info);
  if (!info->has_values || s->likeness == TM_DIFF_LIKE_VALUES) return info->has_values;
  tm_squeezed_dims dims;
  tm_squeezed_dims_take(tensor, &dims);
  if (dims.rank < 2) return false;
  if (side == s->flipped) return tm_transposed_can_flip(tensor);
  return s->flipped == 1 || !tm_transposed_can_flip(tensor);    /* those that can were looked for the other way round */
}

/* Of a few elements the shape has to be the same, but for axes of 1. */
static uint64_t class_of(const search *s, uint32_t side, const tm_archive_tensor *tensor) {
  const bool is_small = tensor->element_count <= FEW_ELEMENTS && s->likeness != TM_DIFF_LIKE_TRANSPOSE;
  uint64_t words[TM_ARCHIVE_MAX_RANK + 2], count = 0;
  if (s->likeness == TM_DIFF_LIKE_BYTES) {
    words[count++] = tensor->format != TM_FORMAT_NONE ? tensor->format : hash_text(tensor->type_name);
    words[count++] = tensor->bytes;
    if (!is_small) return hash_words(words, count);
  }
  tm_squeezed_dims dims;
  tm_squeezed_dims_take(tensor, &dims);
  const bool is_reversed = s->likeness == TM_DIFF_LIKE_TRANSPOSE && side == s->flipped;
  for (uint32_t i = 0; i < dims.rank; i++) words[count++] = dims.dims[is_reversed ? dims.rank - 1 - i : i];
  return hash_words(words, count);
}

static bool is_looked_for(const search *s, uint32_t side, uint64_t tensor) {
  const uint8_t moved = TM_DIFF_UNEQUAL | TM_DIFF_EXCLUDED;
  if (s->is_for_moved) return (s->pairing->sides[side].marks[tensor] & moved) == TM_DIFF_UNEQUAL;
  return tm_diff_pairing_is_left(s->pairing, side, tensor);
}

static tm_status list_all(search *s, tm_error *error) {
  const tm_diff_side *sides = s->pairing->sides;
  TM_TRY(tm_content_groups_init(&s->groups, s->pairing->memory, sides[0].count + sides[1].count, s->digester->cancelled, error));
  for (uint32_t side = 0; side < 2; side++) {
    for (uint64_t i = 0; i < sides[side].count; i++) {
      if (i % TM_TENSORS_BETWEEN_LOOKS == 0 && tm_job_is_cancelled(s->pairing->job)) return TM_ERROR_CANCELLED;
      const bool is_left = is_looked_for(s, side, i);
      const bool is_of_those_left = s->is_for_moved || s->likeness == TM_DIFF_LIKE_ROUNDED;
      if (!is_eligible(s, side, tensor_at(s, side, i)) || (is_of_those_left && !is_left)) continue;
      s->groups.entries[s->groups.count++] = (tm_content_entry){
        .key = class_of(s, side, tensor_at(s, side, i)), .tensor = i, .side = side, .is_left = is_left,
        .is_wanted = is_left && tm_diff_pairing_has(s->pairing, side, i, TM_DIFF_SELECTED) };
    }
  }
  return tm_content_groups_drop(&s->groups);
}

/* ---- samples and digests ---- */

static tm_status sample_transpose(const search *s, const tm_content_entry *entry, tm_content_digest *out_digest, tm_error *error) {
  double values[TM_TRANSPOSED_SAMPLES];
  uint64_t places[TM_TRANSPOSED_SAMPLES];
  const tm_archive *archive = s->pairing->sides[entry->side].archive;
  tm_transposed_places(archive, entry->tensor, s->sample_count, places);
  TM_TRY(tm_transposed_sample(archive, entry->tensor, entry->side == s->flipped, places, s->sample_count, values, error));
  *out_digest = (tm_content_digest){ .is_constant = memcmp(values, values + 1, (s->sample_count - 1) * sizeof *values) == 0 };
  tm_content_hash_add(&out_digest->hash, 0, values, s->sample_count * sizeof *values);
  return TM_OK;
}

static tm_status take_sample(const search *s, const tm_content_entry *entry, tm_content_digest *out_digest, tm_error *error) {
  if (s->likeness == TM_DIFF_LIKE_TRANSPOSE) return sample_transpose(s, entry, out_digest, error);
  const tm_content_view view = s->likeness == TM_DIFF_LIKE_BYTES ? TM_CONTENT_BYTES : TM_CONTENT_VALUES;
  return tm_content_sample(s->pairing->sides[entry->side].archive, entry->tensor, view, s->rounded_to, out_digest, error);
}

static tm_status take_digest(const search *s, const tm_content_entry *entry, tm_content_digest *out_digest, tm_error *error) {
  const bool is_turned = s->likeness == TM_DIFF_LIKE_TRANSPOSE && entry->side == s->flipped;
  const tm_content_view view = is_turned ? TM_CONTENT_TURNED : s->likeness == TM_DIFF_LIKE_BYTES ? TM_CONTENT_BYTES : TM_CONTENT_VALUES;
  return tm_content_digest_take(s->digester, s->pairing->sides[entry->side].archive, entry->tensor, view, out_digest, error);
}

static void add_to_key(tm_content_entry *entry, const tm_content_digest *digest) {
  entry->key = hash_words((const uint64_t[]){ entry->key, digest->hash.low, digest->hash.high }, 3);
  entry->is_constant = digest->is_constant;
}

/* In the order of the files. */
static tm_status take_samples(search *s, tm_error *error) {
  for (uint64_t i = 0; i < s->groups.count; i++) {
    tm_content_entry *entry = &s->groups.entries[i];
    tm_content_digest digest;
    if (tm_job_is_cancelled(s->pairing->job)) return TM_ERROR_CANCELLED;
    const tm_status status = take_sample(s, entry, &digest, error);
    if (status != TM_OK) return tm_tensor_name_failure(tensor_of(s, entry), status, error);
    add_to_key(entry, &digest);
  }
  return tm_content_groups_drop(&s->groups);
}

/* Reading all of a tensor is half of what is left to do with it: it may be read once more, and compared then. */
typedef struct counting {
  tm_job  *job;
  uint64_t whole_bytes, read_bytes;
  uint64_t most_bytes;          /* that this reading counts */
  uint64_t *searched_bytes;     /* of the tensor */
  uint64_t counted_bytes;       /* of these now */
} counting;

static void count_reading(void *context, uint64_t bytes) {
  counting *count = context;
  count->read_bytes += bytes;
  const uint64_t due = (uint64_t)((double)count->most_bytes * ((double)count->read_bytes / (double)count->whole_bytes));
  const uint64_t more = tm_min_u64(due, count->most_bytes) - count->counted_bytes;
  count->counted_bytes += more;
  *count->searched_bytes += more;
  tm_job_advance(count->job, more, 0);
}

static tm_status read_whole(const search *s, const tm_content_entry *entry, tm_content_digest *out_digest, tm_error *error) {
  counting count = { .job = s->pairing->job, .whole_bytes = tensor_of(s, entry)->bytes,
                     .searched_bytes = &s->pairing->sides[entry->side].searched_bytes[entry->tensor] };
  const bool counts = tm_diff_pairing_counts(s->pairing, entry->side, entry->tensor);
  count.most_bytes = counts ? (count.whole_bytes - *count.searched_bytes) / 2 : 0;
  s->digester->advanced = count_reading;
  s->digester->advanced_context = &count;
  const tm_status status = take_digest(s, entry, out_digest, error);
  s->digester->advanced = NULL;
  return status;
}

/* ---- pairs ---- */

static bool can_compare(const search *s, const tm_archive_tensor *a, const tm_archive_tensor *b) {
  if (s->likeness == TM_DIFF_LIKE_TRANSPOSE) return tm_transposed_is_possible(a, b);
  const bool is_same_format = a->format == b->format && (a->format != TM_FORMAT_NONE || strcmp(a->type_name, b->type_name) == 0);
  if (a->element_count != b->element_count) return false;
  if (s->likeness == TM_DIFF_LIKE_BYTES) return is_same_format && a->bytes == b->bytes;
  return !is_same_format || tm_format_find(a->format)->kind == TM_KIND_BLOCK;   /* else equal values have equal bytes */
}

static const tm_diff_paired paired_by[] = {
  [TM_DIFF_LIKE_BYTES] = TM_DIFF_PAIRED_BY_CONTENT,
  [TM_DIFF_LIKE_VALUES] = TM_DIFF_PAIRED_BY_VALUES,
  [TM_DIFF_LIKE_TRANSPOSE] = TM_DIFF_PAIRED_TRANSPOSED,
  [TM_DIFF_LIKE_ROUNDED] = TM_DIFF_PAIRED_ROUNDED,
};

/* `one` has no counterpart; with is_tied the other one has another, which holds the same unless it is marked as unequal. */
static tm_status add_pair(search *s, uint32_t side, uint64_t one, uint64_t other, bool is_tied, tm_error *error) {
  tm_diff_pair pair = { .a = side == 0 ? one : other, .b = side == 0 ? other : one, .paired = (uint8_t)paired_by[s->likeness],
                        .is_transposed = s->likeness == TM_DIFF_LIKE_TRANSPOSE, .is_tied = is_tied, .is_tentative = true,
                        .is_sole = is_tied && tm_diff_pairing_has(s->pairing, 1 - side, other, TM_DIFF_UNEQUAL) };
  if (!can_compare(s, tensor_at(s, 0, pair.a), tensor_at(s, 1, pair.b))) return TM_OK;
  TM_TRY(tm_diff_pairing_add(s->pairing, &s->pairs, pair, error));
  tm_diff_pair *added = &s->pairs.items[s->pairs.count - 1];
  if (is_tied && side == 0) added->counts_b = false;
  if (is_tied && side == 1) added->counts_a = false;
  return TM_OK;
}

/* Tensors of equal content, as far as is known. */
typedef struct equals {
  const tm_content_group *group;
  uint64_t                left_counts[2];
  const tm_content_entry *firsts[2];    /* whom a tied one is held against: one with an equal counterpart, if there is one */
  bool                    is_trivial;   /* a few elements or a constant: equal to many without meaning anything */
} equals;

static uint32_t rank_of(const search *s, const tm_content_entry *entry) {
  if (entry == NULL) return 0;
  if (tm_diff_pairing_has(s->pairing, entry->side, entry->tensor, TM_DIFF_UNEQUAL)) return 1;
  return entry->is_left ? 2 : 3;
}

static equals look_at(const search *s, const tm_content_group *group) {
  equals found = { .group = group };
  for (uint64_t i = group->begin; i < group->end; i++) {
    const tm_content_entry *entry = tm_content_groups_entry(&s->groups, i), **first = &found.firsts[entry->side];
    found.left_counts[entry->side] += entry->is_left;
    if (rank_of(s, entry) > rank_of(s, *first)) *first = entry;
    found.is_trivial = found.is_trivial || entry->is_constant || tensor_of(s, entry)->element_count <= FEW_ELEMENTS;
  }
  return found;
}

static tm_status add_rest(search *s, const equals *found, const tm_named_item *item, const uint64_t *lone_counts, tm_error *error) {
  const uint32_t other = 1 - item->side;
  if (!found->is_trivial && s->likeness == TM_DIFF_LIKE_ROUNDED) return TM_OK;  /* several round to it, which ties none of them */
  if (!found->is_trivial) return add_pair(s, item->side, item->item, found->firsts[other]->tensor, true, error);
  if (lone_counts[other] != 0) tm_diff_pairing_mark_ambiguous(s->pairing, item->side, item->item);
  return TM_OK;
}

static tm_status add_matches(search *s, const equals *found, const tm_named_item *items, uint64_t count, tm_error *error) {
  uint64_t lone_counts[2] = { 0, 0 };
  for (uint64_t i = 0; i < count; i++) lone_counts[items[i].side] += items[i].partner == TM_NO_PARTNER;
  for (uint64_t i = 0; i < count; i++) {
    const tm_named_item *item = &items[i];
    const bool is_wanted = tm_diff_pairing_has(s->pairing, item->side, item->item, TM_DIFF_SELECTED);
    if (item->partner == TM_NO_PARTNER) {
      if (is_wanted) TM_TRY(add_rest(s, found, item, lone_counts, error));
    } else if (item->side == 0 && (is_wanted || tm_diff_pairing_has(s->pairing, 1, item->partner, TM_DIFF_SELECTED))) {
      TM_TRY(add_pair(s, 0, item->item, item->partner, false, error));
    }
  }
  return TM_OK;
}

static tm_status pair_equals(search *s, const tm_content_group *group, tm_error *error) {
  const equals found = look_at(s, group);
  const uint64_t count = found.left_counts[0] + found.left_counts[1];
  tm_memory *memory = s->pairing->memory;
  tm_named_item *items = tm_memory_calloc(memory, count, sizeof *items);
  if (items == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of tensors");
  uint64_t next = 0;
  for (uint64_t i = group->begin; i < group->end; i++) {
    const tm_content_entry *entry = tm_content_groups_entry(&s->groups, i);
    if (entry->is_left) items[next++] = (tm_named_item){ .name = tensor_of(s, entry)->name, .item = entry->tensor, .side = entry->side };
  }
  const bool is_clear = !found.is_trivial || (found.left_counts[0] == 1 && found.left_counts[1] == 1);
  tm_status status = tm_name_affinity_match(memory, items, count, !is_clear, s->digester->cancelled);
  if (status == TM_ERROR_NO_MEMORY) (void)tm_fail(error, status, "no memory for the names of tensors");
  if (status == TM_OK) status = add_matches(s, &found, items, count, error);
  tm_memory_free(memory, items, count * sizeof *items);
  return status;
}

/* Two that nobody else resembles: whether they are equal will be seen when they are compared. */
static bool is_clear_pair(const search *s, const tm_content_group *group) {
  if (group->end - group->begin != 2) return false;
  const tm_content_entry *a = tm_content_groups_entry(&s->groups, group->begin), *b = tm_content_groups_entry(&s->groups, group->begin + 1);
  return a->side != b->side && !a->is_constant;
}

/* The groups of those whose samples agree: either they are clear, or all of them is read.  That one is another one rounded is not
   seen when they are compared.  The few elements that are looked at for a
   transpose are alike in everything that has mostly zeros: for what has a counterpart already that is not worth reading it. */
static tm_status digest_unclear(search *s, tm_error *error) {
  tm_content_group group = { 0, 0 };
  while (tm_content_groups_next(&s->groups, &group)) {
    for (uint64_t i = group.begin; i < group.end; i++) {
      tm_content_entry *entry = tm_content_groups_entry(&s->groups, i);
      const bool is_worth_it = s->likeness != TM_DIFF_LIKE_TRANSPOSE || !entry->is_constant || entry->is_left;
      const bool is_seen_later = !s->is_for_moved && s->likeness != TM_DIFF_LIKE_ROUNDED && is_clear_pair(s, &group);
      entry->is_kept = !is_seen_later && is_worth_it;
    }
  }
  for (uint64_t i = 0; i < s->groups.count; i++) {
    tm_content_entry *entry = &s->groups.entries[i];
    tm_content_digest digest;
    if (!entry->is_kept) continue;
    const tm_status status = read_whole(s, entry, &digest, error);
    if (status != TM_OK) return tm_tensor_name_failure(tensor_of(s, entry), status, error);
    add_to_key(entry, &digest);
  }
  return tm_content_groups_drop(&s->groups);
}

static tm_status pair_groups(search *s, tm_error *error) {
  tm_content_group group = { 0, 0 };
  for (uint64_t i = 0; tm_content_groups_next(&s->groups, &group); i++) {
    if (i % TM_TENSORS_BETWEEN_LOOKS == 0 && tm_job_is_cancelled(s->pairing->job)) return TM_ERROR_CANCELLED;
    const bool is_constant = tm_content_groups_entry(&s->groups, group.begin)->is_constant;
    if (s->likeness == TM_DIFF_LIKE_TRANSPOSE && is_constant) continue;         /* whatever its order, it says nothing */
    TM_TRY(pair_equals(s, &group, error));
  }
  return TM_OK;
}

/* Into a's order; those of one tensor stay in theirs. */
static tm_status hand_over(search *s, tm_diff_pairs *pairs, tm_error *error) {
  const uint64_t count = s->pairs.count;
  tm_memory *memory = s->pairing->memory;
  tm_keyed_item *order = tm_memory_calloc(memory, count, 2 * sizeof *order);
  if (order == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of tensors");
  for (uint64_t i = 0; i < count; i++) order[i] = (tm_keyed_item){ s->pairs.items[i].a, i };
  tm_keyed_order_sort(order, order + count, count, s->digester->cancelled);
  tm_status status = tm_job_is_cancelled(s->pairing->job) ? TM_ERROR_CANCELLED : TM_OK;
  for (uint64_t i = 0; i < count && status == TM_OK; i++) status = tm_diff_pairs_append(pairs, s->pairs.items[order[i].item], error);
  tm_memory_free(memory, order, count * 2 * sizeof *order);
  return status;
}

/* Only of those that are looked for; what they hold is known to be equal. */
static void count_moved(const search *s, tm_diff_moved *moved) {
  tm_content_group group = { 0, 0 };
  while (tm_content_groups_next(&s->groups, &group)) {
    const equals found = look_at(s, &group);
    if (found.is_trivial || found.left_counts[0] == 0 || found.left_counts[1] == 0) continue;
    const bool is_first = moved->count == 0 || found.firsts[0]->tensor < moved->first[0];
    for (uint32_t side = 0; side < 2 && is_first; side++) moved->first[side] = found.firsts[side]->tensor;
    moved->count += found.left_counts[0];
  }
}

static tm_status find(search *s, tm_diff_pairs *pairs, tm_error *error) {
  TM_TRY(list_all(s, error));
  if (s->likeness == TM_DIFF_LIKE_TRANSPOSE) {          /* mostly a few tell */
    s->sample_count = FIRST_SAMPLES;
    TM_TRY(take_samples(s, error));
    s->sample_count = TM_TRANSPOSED_SAMPLES;
  }
  TM_TRY(take_samples(s, error));
  TM_TRY(digest_unclear(s, error));
  TM_TRY(pair_groups(s, error));
  return hand_over(s, pairs, error);
}

tm_status tm_diff_content_pair(const tm_diff_pairing *pairing, tm_content_digester *digester, const tm_diff_round *round,
                               tm_diff_pairs *pairs, tm_error *error) {
  search s = { .pairing = pairing, .digester = digester, .likeness = round->likeness, .flipped = round->side,
               .rounded_to = round->format };
  digester->rounded_to = round->format;
  s.groups.memory = pairing->memory;
  tm_diff_pairs_init(&s.pairs, pairing->memory);
  const tm_status status = find(&s, pairs, error);
  tm_diff_pairs_deinit(&s.pairs);
  tm_content_groups_deinit(&s.groups);
  return status;
}

tm_status tm_diff_content_find_moved(const tm_diff_pairing *pairing, tm_content_digester *digester, tm_diff_moved *out_moved, tm_error *error) {
  search s = { .pairing = pairing, .digester = digester, .likeness = TM_DIFF_LIKE_BYTES, .is_for_moved = true };
  digester->rounded_to = TM_FORMAT_NONE;
  s.groups.memory = pairing->memory;
  *out_moved = (tm_diff_moved){ 0, { 0, 0 } };
  tm_status status = list_all(&s, error);
  if (status == TM_OK) status = take_samples(&s, error);
  if (status == TM_OK) status = digest_unclear(&s, error);
  if (status == TM_OK) count_moved(&s, out_moved);
  tm_content_groups_deinit(&s.groups);
  return status;
}
