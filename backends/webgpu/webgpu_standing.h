/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu_standing.h - what has become of an adapter since the backend began: how often its device was lost, and the rows
 * whose shaders its compiler refused.  Changed under the backend's lock, read by anybody.
 */
#ifndef WEBGPU_STANDING_H
#define WEBGPU_STANDING_H

#include <stdatomic.h>

#include "webgpu_kernel.h"

#define WEBGPU_MOST_REFUSED 64u         /* an adapter that refuses more is not offered for anything */

typedef struct webgpu_standing {
  _Atomic uint64_t changes;             /* losses in the upper half, refused rows in the lower one: read at once, so that an
                                           answer and its epoch belong together */
  const webgpu_row *_Atomic refused[WEBGPU_MOST_REFUSED];
} webgpu_standing;

/* What a device offers at one moment. */
typedef struct webgpu_offer {
  const webgpu_limits *limits;
  webgpu_standing     *standing;
  uint64_t             refused_count;
  uint64_t             epoch;
} webgpu_offer;

webgpu_offer webgpu_offer_make(const webgpu_limits *limits, webgpu_standing *standing);
int webgpu_offer_lacks(const webgpu_offer *offer, const webgpu_row *row);

/* Both return the new epoch. */
uint64_t webgpu_standing_lose(webgpu_standing *standing);
uint64_t webgpu_standing_refuse(webgpu_standing *standing, const webgpu_row *row);

#endif
