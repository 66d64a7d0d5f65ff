/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_standing.h"

#define FIRST_EPOCH 1u
#define ONE_LOSS (UINT64_C(1) << 32)

static uint64_t refused_in(uint64_t changes) { return changes % ONE_LOSS; }
static uint64_t epoch_after(uint64_t changes) { return FIRST_EPOCH + changes / ONE_LOSS + refused_in(changes); }

webgpu_offer webgpu_offer_make(const webgpu_limits *limits, webgpu_standing *standing) {
  const uint64_t changes = atomic_load(&standing->changes);
  return (webgpu_offer){ .limits = limits, .standing = standing, .refused_count = refused_in(changes), .epoch = epoch_after(changes) };
}

int webgpu_offer_lacks(const webgpu_offer *offer, const webgpu_row *row) {
  if (offer->refused_count > WEBGPU_MOST_REFUSED) return 1;
  for (uint64_t i = 0; i < offer->refused_count; ++i) {
    if (atomic_load(&offer->standing->refused[i]) == row) return 1;
  }
  return 0;
}

uint64_t webgpu_standing_lose(webgpu_standing *standing) {
  return epoch_after(atomic_fetch_add(&standing->changes, ONE_LOSS) + ONE_LOSS);
}

uint64_t webgpu_standing_refuse(webgpu_standing *standing, const webgpu_row *row) {
  const uint64_t count = refused_in(atomic_load(&standing->changes));
  if (count < WEBGPU_MOST_REFUSED) atomic_store(&standing->refused[count], row);
  return epoch_after(atomic_fetch_add(&standing->changes, 1) + 1);
}
