/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_control.h - what a test tells a fake accelerator, through the pointer option "control", and what the fake counts.
 * It knows neg, add, copy and cast-free work on dense f32 in host memory; zeros mean: yes to all that, exact, cost unknown.
 */
#ifndef TM_TESTS_FAKE_CONTROL_H
#define TM_TESTS_FAKE_CONTROL_H

#include <stdatomic.h>

#include "tensormorph/plugin.h"

typedef struct fake_control fake_control;
struct fake_control {
  uint64_t    cost_ns;          /* declared */
  uint64_t    element_cost_ps;  /* declared, a further element */
  uint64_t    real_ns;          /* what a launch really takes */
  uint64_t    setup_ns;
  /* Not NULL: nothing is computed, and no time spent; work and set-ups move this clock by what these say (NULL: nothing). */
  _Atomic uint64_t *clock_ns;
  uint32_t    computes_all_the_same;
  uint64_t  (*virtual_ns)(const struct fake_control *control, uint32_t op, uint64_t elements, uint64_t launch);
  uint64_t  (*declared_ns)(const struct fake_control *control, uint32_t op, uint64_t elements);     /* NULL: as above */
  uint64_t    virtual_setup_ns;         /* what the first prepare takes */
  const void *user;
  uint64_t    workspace_bytes;
  uint32_t    numerics;         /* TM_NUMERICS_* */
  uint32_t    numerics_flags;
  double      numerics_bound;
  uint32_t    only_op;          /* not 0: all other operations are refused */
  uint32_t    any_format;       /* 1: says yes to every format (and computes nothing useful) */
  uint32_t    proposes;         /* 1: refusals for layout and format come with changes */
  uint32_t    proposed_format;  /* of casts; 0: f32 */
  tm_identity uuid;
  tm_identity resource;
  tm_identity memory;           /* all zero: the host's */
  uint32_t    is_asynchronous;  /* 1: launches give tickets; what is done is done at once all the same */
  uint64_t    hang_at;          /* not 0: that ticket never completes, and those after it */
  _Atomic uint64_t fail_at;     /* not 0: that ticket ends as TM_ERROR_INTERNAL and those after it for that reason, until a cancel */
  uint32_t    queue_count;      /* 0: 4 */
  uint32_t    granule;          /* of offsets and stores; 0: 1 */
  int32_t     together_status;  /* not TM_OK: how a launch ends that comes after another one without a wait between */
  _Atomic uint32_t unwaited;    /* launches since the last wait */
  _Atomic uint64_t waits;
  void       *held_input;       /* what the launch that hangs was given */
  void       *held_output;
  _Atomic uint32_t in_launch;
  _Atomic uint32_t most_in_launch;      /* at once */
  /* What it computes wrongly: from that launch on (counted from 1; 0: nothing), of each output the elements [wrong_begin, wrong_end), counted
     from the last one backwards if wrong_is_last; wrong_end 0: all.  By `wrong_by`, 0: by 1000. */
  _Atomic uint64_t wrong_from;
  uint64_t    wrong_begin;
  uint64_t    wrong_end;
  uint32_t    wrong_is_last;
  uint32_t    wrong_op;         /* not 0: only there */
  float       wrong_by;
  _Atomic int32_t  prepare_status;      /* what prepare returns instead of working; TM_OK: it works */
  _Atomic int32_t  launch_status;
  _Atomic uint64_t queries;     /* operations asked about */
  _Atomic uint64_t prepares;
  _Atomic uint64_t releases;
  _Atomic uint64_t launches;
  _Atomic uint64_t epoch;
  const tm_host   *host;        /* set by init */
};

#define FAKE_CONTROL_KEY "control"

#endif
