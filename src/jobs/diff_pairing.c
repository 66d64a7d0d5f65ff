/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/diff_pairing.h"

#include "base/error.h"

static bool shall_end(const tm_diff_pairing *pairing, uint64_t tensor) {
  return tensor % TM_TENSORS_BETWEEN_LOOKS == 0 && tm_job_is_cancelled(pairing->job);
}

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of tensors"); }

/* ---- life ---- */

static tm_status mark_excluded(tm_diff_pairing *pairing, const tm_selection_rules *rules) {
  for (uint32_t side = 0; side < 2 && rules->exclude_count != 0; side++) {
    tm_diff_side *one = &pairing->sides[side];
    for (uint64_t i = 0; i < one->count; i++) {
      if (shall_end(pairing, i)) return TM_ERROR_CANCELLED;
      if (tm_selection_excludes(rules, tm_archive_tensor_at(one->archive, i)->name)) one->marks[i] |= TM_DIFF_EXCLUDED;
    }
  }
  return TM_OK;
}

tm_status tm_diff_pairing_init(tm_diff_pairing *pairing, tm_memory *memory, tm_job *job, const tm_job_source *sources,
                               const tm_selection *selection, const tm_selection_rules *rules, tm_error *error) {
  *pairing = (tm_diff_pairing){ .memory = memory, .job = job };
  for (uint32_t side = 0; side < 2; side++) {
    tm_diff_side *one = &pairing->sides[side];
    one->archive = sources[side].archive;
    one->count = tm_archive_tensor_count(one->archive);
    one->marks = tm_memory_calloc(memory, one->count, sizeof *one->marks);
    one->searched_bytes = tm_memory_calloc(memory, one->count, sizeof *one->searched_bytes);
    if (one->marks == NULL || one->searched_bytes == NULL) return no_memory(error);
  }
  for (uint64_t i = 0; i < selection->count; i++)
    pairing->sides[selection->items[i].source].marks[selection->items[i].tensor] |= TM_DIFF_SELECTED;
  return mark_excluded(pairing, rules);
}

void tm_diff_pairing_deinit(tm_diff_pairing *pairing) {
  for (uint32_t side = 0; side < 2; side++) {
    const tm_diff_side *one = &pairing->sides[side];
    tm_memory_free(pairing->memory, one->marks, one->count * sizeof *one->marks);
    tm_memory_free(pairing->memory, one->searched_bytes, one->count * sizeof *one->searched_bytes);
  }
}

void tm_diff_pairs_init(tm_diff_pairs *pairs, tm_memory *memory) { *pairs = (tm_diff_pairs){ .memory = memory }; }

void tm_diff_pairs_deinit(tm_diff_pairs *pairs) {
  tm_memory_free(pairs->memory, pairs->items, pairs->capacity * sizeof *pairs->items);
  tm_diff_pairs_init(pairs, pairs->memory);
}

/* ---- pairs ---- */

static void mark(tm_diff_pairing *pairing, uint32_t side, uint64_t tensor) {
  if (tensor != TM_DIFF_NO_TENSOR) pairing->sides[side].marks[tensor] |= TM_DIFF_MATCHED;
}

void tm_diff_pairing_mark(tm_diff_pairing *pairing, const tm_diff_pair *pair) {
  mark(pairing, 0, pair->a);
  mark(pairing, 1, pair->b);
}

void tm_diff_pairing_mark_ambiguous(const tm_diff_pairing *pairing, uint32_t side, uint64_t tensor) {
  pairing->sides[side].marks[tensor] |= TM_DIFF_AMBIGUOUS;
}

uint64_t tm_diff_pairing_ambiguous_count(const tm_diff_pairing *pairing) {
  uint64_t count = 0;
  for (uint32_t side = 0; side < 2; side++)
    for (uint64_t i = 0; i < pairing->sides[side].count; i++)
      count += tm_diff_pairing_has(pairing, side, i, TM_DIFF_AMBIGUOUS) && tm_diff_pairing_is_left(pairing, side, i);
  return count;
}

void tm_diff_pairing_mark_unequal(tm_diff_pairing *pairing, const tm_diff_pair *pair) {
  pairing->sides[0].marks[pair->a] |= TM_DIFF_UNEQUAL;
  pairing->sides[1].marks[pair->b] |= TM_DIFF_UNEQUAL;
}

/* A tensor counts once: with its first counterpart. */
bool tm_diff_pairing_counts(const tm_diff_pairing *pairing, uint32_t side, uint64_t tensor) {
  if (tensor == TM_DIFF_NO_TENSOR) return false;
  return tm_diff_pairing_has(pairing, side, tensor, TM_DIFF_SELECTED) && tm_diff_pairing_is_left(pairing, side, tensor);
}

static bool is_excluded(const tm_diff_pairing *pairing, uint32_t side, uint64_t tensor) {
  return tensor != TM_DIFF_NO_TENSOR && tm_diff_pairing_has(pairing, side, tensor, TM_DIFF_EXCLUDED);
}

tm_status tm_diff_pairs_append(tm_diff_pairs *pairs, tm_diff_pair pair, tm_error *error) {
  if (pairs->count == pairs->capacity) {
    const uint64_t capacity = pairs->capacity == 0 ? 256 : pairs->capacity * 2;
    tm_diff_pair *grown = tm_memory_grow(pairs->memory, pairs->items, pairs->capacity, capacity, sizeof *grown);
    if (grown == NULL) return no_memory(error);
    pairs->items = grown;
    pairs->capacity = capacity;
  }
  pairs->items[pairs->count++] = pair;
  return TM_OK;
}

tm_status tm_diff_pairing_add(const tm_diff_pairing *pairing, tm_diff_pairs *pairs, tm_diff_pair pair, tm_error *error) {
  pair.counts_a = tm_diff_pairing_counts(pairing, 0, pair.a);
  pair.counts_b = tm_diff_pairing_counts(pairing, 1, pair.b);
  if (pair.counts_a) pair.searched_bytes[0] = pairing->sides[0].searched_bytes[pair.a];
  if (pair.counts_b) pair.searched_bytes[1] = pairing->sides[1].searched_bytes[pair.b];
  pair.is_hidden = is_excluded(pairing, 0, pair.a) || is_excluded(pairing, 1, pair.b);
  return tm_diff_pairs_append(pairs, pair, error);
}

/* ---- by name ---- */

static bool are_singles(const tm_diff_pairing *pairing) {
  const tm_diff_side *sides = pairing->sides;
  return sides[0].count == 1 && sides[1].count == 1 && (tm_archive_is_nameless(sides[0].archive) || tm_archive_is_nameless(sides[1].archive));
}

/* Of several tensors of one name in one file the first has its counterpart by name. */
static bool find_counterpart(const tm_diff_pairing *pairing, uint64_t a, uint64_t *out_b) {
  const tm_string name = tm_archive_tensor_at(pairing->sides[0].archive, a)->name;
  return tm_archive_find(pairing->sides[1].archive, name.data, name.length, out_b) && tm_diff_pairing_is_left(pairing, 1, *out_b);
}

static tm_status add_matched(tm_diff_pairing *pairing, tm_diff_pairs *pairs, uint64_t a, uint64_t b, tm_diff_paired paired, tm_error *error) {
  const tm_diff_pair pair = { .a = a, .b = b, .paired = (uint8_t)paired };
  TM_TRY(tm_diff_pairing_add(pairing, pairs, pair, error));
  tm_diff_pairing_mark(pairing, &pair);
  return TM_OK;
}

tm_status tm_diff_pairing_by_name(tm_diff_pairing *pairing, tm_diff_pairs *pairs, tm_error *error) {
  for (uint64_t a = 0; a < pairing->sides[0].count; a++) {
    uint64_t b = 0;
    if (shall_end(pairing, a)) return TM_ERROR_CANCELLED;
    if (!find_counterpart(pairing, a, &b)) continue;
    if (tm_diff_pairing_has(pairing, 0, a, TM_DIFF_SELECTED)) TM_TRY(add_matched(pairing, pairs, a, b, TM_DIFF_PAIRED_BY_NAME, error));
    else tm_diff_pairing_mark(pairing, &(tm_diff_pair){ .a = a, .b = b });
  }
  if (!are_singles(pairing) || !tm_diff_pairing_is_left(pairing, 0, 0)) return TM_OK;
  const bool is_selected = tm_diff_pairing_has(pairing, 0, 0, TM_DIFF_SELECTED) || tm_diff_pairing_has(pairing, 1, 0, TM_DIFF_SELECTED);
  if (!is_selected) return TM_OK;
  return add_matched(pairing, pairs, 0, 0, TM_DIFF_PAIRED_AS_SINGLE, error);
}

/* ---- the rest ---- */

tm_status tm_diff_pairing_rest(const tm_diff_pairing *pairing, tm_diff_pairs *pairs, tm_error *error) {
  for (uint32_t side = 0; side < 2; side++) {
    for (uint64_t tensor = 0; tensor < pairing->sides[side].count; tensor++) {
      if (shall_end(pairing, tensor)) return TM_ERROR_CANCELLED;
      if (!tm_diff_pairing_is_left(pairing, side, tensor) || !tm_diff_pairing_has(pairing, side, tensor, TM_DIFF_SELECTED)) continue;
      const tm_diff_pair pair = { .a = side == 0 ? tensor : TM_DIFF_NO_TENSOR, .b = side == 0 ? TM_DIFF_NO_TENSOR : tensor };
      TM_TRY(tm_diff_pairing_add(pairing, pairs, pair, error));
    }
  }
  return TM_OK;
}
