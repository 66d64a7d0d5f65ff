/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/transpose_guess.h"

#include <math.h>
#include <string.h>

#include "jobs/transposed_view.h"

#define FIRST_SAMPLES 4u
/* How much nearer the transpose has to be: a square says nothing by its shape. */
#define NEARER 2.0
#define NEARER_SQUARE 8.0

/* Elements at the same places of both, and of the transpose of one. */
typedef struct samples {
  uint32_t count;
  uint64_t places[TM_TRANSPOSED_SAMPLES];
  double   straight[TM_TRANSPOSED_SAMPLES], other[TM_TRANSPOSED_SAMPLES], turned[TM_TRANSPOSED_SAMPLES];
} samples;

static bool take(tm_transpose_side straight, tm_transpose_side turned, samples *s) {
  return tm_transposed_sample(straight.archive, straight.tensor, false, s->places, s->count, s->straight, NULL) == TM_OK &&
         tm_transposed_sample(turned.archive, turned.tensor, false, s->places, s->count, s->other, NULL) == TM_OK &&
         tm_transposed_sample(turned.archive, turned.tensor, true, s->places, s->count, s->turned, NULL) == TM_OK;
}

static bool are_equal(const samples *s, const double *values) { return memcmp(s->straight, values, s->count * sizeof *values) == 0; }

static double distance_of(const samples *s, const double *values) {
  double sum = 0;
  for (uint32_t i = 0; i < s->count; i++) sum += fabs(s->straight[i] - values[i]);
  return sum;
}

/* One large element is not to speak for all. */
static bool are_most_nearer(const samples *s) {
  uint32_t nearer = 0, farther = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const double turned = fabs(s->straight[i] - s->turned[i]), other = fabs(s->straight[i] - s->other[i]);
    nearer += turned < other;
    farther += turned > other;
  }
  return nearer > 2 * farther;
}

static bool is_turned(const samples *s, bool is_square) {
  if (are_equal(s, s->other)) return false;
  if (are_equal(s, s->turned)) return true;
  const double factor = is_square && s->count > FIRST_SAMPLES ? NEARER_SQUARE : NEARER;
  return distance_of(s, s->turned) * factor < distance_of(s, s->other) && (!is_square || are_most_nearer(s));
}

/* The value that most of them have, if there is one. */
static double usual_value(const samples *s) {
  double usual = s->straight[0];
  uint32_t votes = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const bool is_usual = memcmp(&s->straight[i], &usual, sizeof usual) == 0;
    if (!is_usual && votes == 0) usual = s->straight[i];
    votes = is_usual || votes == 0 ? votes + 1 : votes - 1;
  }
  return usual;
}

/* Zeros are where they were, however they are turned. */
static bool is_varied(const samples *s, double usual) {
  uint32_t others = 0;
  for (uint32_t i = 0; i < s->count; i++) others += memcmp(&s->straight[i], &usual, sizeof usual) != 0;
  return others >= s->count / 2;
}

/* Whether a few tell already that it is none, which is most of what there is. */
static bool is_out_of_question(tm_transpose_side straight, tm_transpose_side turned) {
  samples few = { .count = FIRST_SAMPLES };
  tm_transposed_places(straight.archive, straight.tensor, few.count, few.places);
  if (!take(straight, turned, &few)) return true;
  return are_equal(&few, few.other) ? !are_equal(&few, few.turned) : !is_turned(&few, true);
}

bool tm_transpose_guess(tm_transpose_side straight, tm_transpose_side turned, const _Atomic uint32_t *cancelled) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(straight.archive, straight.tensor);
  const bool is_square = tm_transposed_is_symmetric(tensor), is_small = tensor->element_count <= TM_TRANSPOSED_SAMPLES;
  samples many = { .count = is_small ? (uint32_t)tensor->element_count : TM_TRANSPOSED_SAMPLES };
  if (is_square && !is_small && is_out_of_question(straight, turned)) return false;
  tm_transposed_places(straight.archive, straight.tensor, many.count, many.places);
  if (!take(straight, turned, &many)) return false;
  const double usual = usual_value(&many);
  if (is_small || is_varied(&many, usual)) return is_turned(&many, is_square);
  const tm_transposed_search search = { .usual = usual, .cancelled = cancelled };
  if (tm_transposed_find_others(straight.archive, straight.tensor, &search, &many.count, many.places, NULL) != TM_OK) return false;
  return many.count != 0 && take(straight, turned, &many) && is_turned(&many, is_square);
}
