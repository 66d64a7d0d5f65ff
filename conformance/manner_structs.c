/* SPDX-License-Identifier: Apache-2.0 */
/* Manners towards structs of a later host. */
#include "conformance/errand.h"
#include "conformance/manner.h"
#include "plugin/table.h"

#define TAIL_BYTES 24u
#define BUSY_TRIES 200000u
#define UNKNOWN_DEMAND 0x40000000u

static tm_status finish(subject *s, tm_status status, const tm_ticket *ticket) {
  if (status != TM_OK || (s->info.flags & TM_DEVICE_SYNCHRONOUS) != 0 || ticket->value == 0) return status;
  return SUBJECT_CALL(s, wait)(s->device, ticket, 1, TM_WAIT_FOREVER);
}

/* ---- prepare ---- */

typedef struct longer_operation {
  tm_operation  known;
  unsigned char tail[TAIL_BYTES];
} longer_operation;

/* That query refuses such an operation as well is no excuse for another status: the host could not tell why. */
static void prepare_one(manner_run *run, errand *e, const tm_operation *operation, tm_status wanted, const char *what) {
  tm_kernel *kernel = NULL;
  subject *s = e->s;
  const tm_status status = SUBJECT_CALL(s, prepare)(s->device, operation, &e->answer, &kernel);
  if (status == TM_OK) SUBJECT_CALL(s, release)(s->device, kernel);
  if (status == TM_STALE && subject_has_moved(s, &e->answer)) return;
  if (status != wanted) trial_fail(&run->t, "prepare of %s gave %d", what, status);
}

static void check_prepare(manner_run *run, errand *e) {
  const tm_operation *usual = &e->q.c.operation;
  longer_operation longer;
  unsigned char attributes[sizeof e->q.c.attributes + TAIL_BYTES] = { 0 };
  memset(&longer, 0, sizeof longer);
  longer.known = *usual;
  longer.known.struct_size = sizeof longer;
  prepare_one(run, e, &longer.known, TM_OK, "a longer struct whose tail is zero");
  longer.tail[TAIL_BYTES - 1] = 1;
  prepare_one(run, e, &longer.known, TM_UNSUPPORTED, "a longer struct whose tail is not zero");
  tm_operation other = *usual;
  other.flags |= UNKNOWN_DEMAND;
  prepare_one(run, e, &other, TM_UNSUPPORTED, "an operation with an unknown demand");
  if (usual->attribute_bytes != 0) memcpy(attributes, usual->attributes, usual->attribute_bytes);
  other = *usual;
  other.attributes = attributes;
  other.attribute_bytes = usual->attribute_bytes + TAIL_BYTES;
  attributes[other.attribute_bytes - 1] = 1;
  prepare_one(run, e, &other, TM_UNSUPPORTED, "longer attributes whose tail is not zero");
}

/* ---- launch ---- */

typedef struct longer_launch {
  tm_launch     known;
  unsigned char tail[TAIL_BYTES];
} longer_launch;

static void check_launch(manner_run *run, subject *s, errand *e) {
  longer_launch longer;
  tm_binding bindings[CASE_MAX_OPERANDS + 1];
  const uint32_t count = e->q.c.operation.input_count + 1;
  memset(&longer, 0, sizeof longer);
  for (uint32_t i = 0; i < count; i++) bindings[i] = image_binding(&e->operands[i]);
  bindings[count] = (tm_binding){ e->workspace.buffer, e->workspace.first, e->answer.workspace_bytes };
  longer.known = (tm_launch){ .struct_size = sizeof longer, .kernel = e->kernel, .bindings = bindings,
                              .binding_count = count + (e->answer.workspace_bytes != 0) };
  for (int i = 0; i < 2 && !run->t.failed; i++) {
    tm_ticket ticket = { 0, 0, 0 };
    longer.tail[TAIL_BYTES - 1] = (unsigned char)i;
    tm_status status = SUBJECT_CALL(s, launch)(s->device, &longer.known, &ticket);
    for (uint32_t k = 0; k < BUSY_TRIES && status == TM_BUSY; k++)
      status = SUBJECT_CALL(s, launch)(s->device, &longer.known, &ticket);
    status = finish(s, status, &ticket);
    if (status != (i == 0 ? TM_OK : TM_UNSUPPORTED))
      trial_fail(&run->t, "launch of a longer struct whose tail is %s gave %d", i == 0 ? "zero" : "not zero", status);
  }
}

/* ---- transfers ---- */

typedef struct longer_transfer {
  tm_transfer   known;
  unsigned char tail[TAIL_BYTES];
} longer_transfer;

static void check_transfer(manner_run *run, subject *s, bool up) {
  unsigned char bytes[256] = { 0 };
  longer_transfer longer;
  tm_buffer *buffer = NULL;
  if (SUBJECT_CALL(s, buffer_create)(s->device, 0, sizeof bytes, &buffer) != TM_OK) return;
  memset(&longer, 0, sizeof longer);
  longer.known = (tm_transfer){ .struct_size = sizeof longer, .host = bytes, .bytes = sizeof bytes };
  if (up) longer.known.destination = buffer;
  else longer.known.source = buffer;
  for (int i = 0; i < 2 && !run->t.failed; i++) {
    tm_ticket ticket = { 0, 0, 0 };
    longer.tail[TAIL_BYTES - 1] = (unsigned char)i;
    const tm_status status = finish(s, (up ? SUBJECT_CALL(s, upload) : SUBJECT_CALL(s, download))(s->device, &longer.known, &ticket), &ticket);
    if (status != (i == 0 ? TM_OK : TM_UNSUPPORTED))
      trial_fail(&run->t, "%s of a longer struct whose tail is %s gave %d", up ? "upload" : "download",
                 i == 0 ? "zero" : "not zero", status);
  }
  SUBJECT_CALL(s, buffer_destroy)(s->device, 0, buffer, sizeof bytes, 0);
}

void manner_check_longer_structs(manner_run *run) {
  subject s;
  errand e;
  if (!manner_open(run, &s, 0)) return;
  if (errand_make(&e, &s, 0, run->seed, &run->t)) {
    check_prepare(run, &e);
    if (!run->t.failed) check_launch(run, &s, &e);
  } else if (!run->t.failed) {
    manner_skip(run, "it claims nothing");
  }
  errand_free(&e);
  for (int up = 1; up >= 0 && !s.host_makes_buffers && !run->t.failed; up--) check_transfer(run, &s, up != 0);
  subject_close(&s);
}
