/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ballast.h - something that keeps a queue busy while more is put behind it or beside it: a long upload, or where transfers are
 * none a launch on many elements.
 */
#ifndef CONFORMANCE_BALLAST_H
#define CONFORMANCE_BALLAST_H

#include "conformance/errand.h"

typedef struct ballast {
  subject       *s;
  tm_buffer     *buffer;        /* NULL: it is a launch, or there is none */
  unsigned char *host;
  uint64_t       bytes;         /* of an upload; whoever needs many may make it less */
  errand         large;
  bool           has_large;
} ballast;

/* Synchronous devices have none; nor has whoever has no room.  To be freed once none of it is under way. */
void ballast_make(ballast *b, subject *s, uint64_t seed);
void ballast_free(ballast *b);
/* Enqueues it; a ticket of value 0 if there is none. */
tm_ticket ballast_put(ballast *b, uint32_t queue);

#endif
