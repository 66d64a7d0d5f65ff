/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/ballast.h"

#include <stdlib.h>

#define BALLAST_BYTES (UINT64_C(32) << 20)
#define LARGE_ELEMENTS (UINT64_C(1) << 20)

void ballast_make(ballast *b, subject *s, uint64_t seed) {
  const uint64_t largest = s->space.largest_buffer_bytes;
  trial unused = { .failed = false };
  memset(b, 0, sizeof *b);
  b->s = s;
  b->bytes = BALLAST_BYTES;
  if ((s->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return;
  if (s->host_makes_buffers) {
    b->has_large = errand_make_large(&b->large, s, 0, LARGE_ELEMENTS, seed, &unused);
    if (!b->has_large) errand_free(&b->large);
    return;
  }
  b->host = largest != 0 && largest < BALLAST_BYTES ? NULL : calloc(1, BALLAST_BYTES);
  if (b->host != NULL && SUBJECT_CALL(s, buffer_create)(s->device, 0, BALLAST_BYTES, &b->buffer) != TM_OK) b->buffer = NULL;
}

void ballast_free(ballast *b) {
  if (b->has_large) errand_free(&b->large);
  if (b->buffer != NULL) subject_buffer_free(b->s, b->buffer, BALLAST_BYTES);
  free(b->host);
  memset(b, 0, sizeof *b);
}

tm_ticket ballast_put(ballast *b, uint32_t queue) {
  tm_ticket ticket = { queue, 0, 0 };
  const tm_transfer up = { .struct_size = sizeof up, .queue = queue, .destination = b->buffer, .host = b->host, .bytes = b->bytes };
  tm_status status = TM_BUSY;
  if (b->has_large) status = errand_launch(&b->large, queue, NULL, 0, &ticket);
  else if (b->buffer != NULL) status = SUBJECT_CALL(b->s, upload)(b->s->device, &up, &ticket);
  return status == TM_OK ? ticket : (tm_ticket){ queue, 0, 0 };
}
