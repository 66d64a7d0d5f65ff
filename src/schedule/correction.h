/* SPDX-License-Identifier: Apache-2.0 */
/*
 * correction.h - how far declared costs are from the truth, learned from what was measured.  Of an operation's time a
 * factor is held at three levels, device -> operation class -> bucket (operation, formats, size), each shrunk towards the
 * one above by how little was seen of it, so that one measurement of one thing already corrects its whole class.  What is
 * above a class is what the device's other classes have in common (tm_class_prior_of), so that one measured class corrects the
 * others by half of its logarithm, and all of them together a new one nearly whole.  The same
 * is held of what is paid once, and of copies between two memories.  Beside them stands the time as it follows from the
 * core's own count of the work alone: it tells what a device may be good for whose declarations are no good, and where they
 * vary beyond all measure it takes their place until the thing itself was measured.
 *
 * Prices come from a snapshot: what is learned is only told when it is worth it, and then all of it at once
 * (`generation` moves).  Whoever wants the same choices all along freezes the snapshot.  [any thread]
 */
#ifndef TM_SCHEDULE_CORRECTION_H
#define TM_SCHEDULE_CORRECTION_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ops/op_table.h"
#include "plugin/work_kind.h"
#include "schedule/correction_node.h"

/* What an entry is about; the numbers stand in files. */
#define TM_CORRECTION_DEVICE       1u   /* an operation's time; key 0 */
#define TM_CORRECTION_CLASS        2u   /* key: tm_op_class */
#define TM_CORRECTION_BUCKET       3u   /* key: tm_correction_bucket_of */
#define TM_CORRECTION_SETUP_DEVICE 4u   /* what is paid once, beside what was declared; key 0 */
#define TM_CORRECTION_SETUP        5u   /* key: what is set up; beside a millisecond, whatever was declared */
#define TM_CORRECTION_LATENCY      6u   /* of copies, owner is a link; key 0 */
#define TM_CORRECTION_RATE         7u
#define TM_CORRECTION_COPY         8u   /* key: floor(log2(bytes)) */
#define TM_CORRECTION_WORK         9u   /* an operation's time beside the core's own count of its work; key: tm_op_class */

typedef struct tm_correction_entry {
  uint32_t           kind;              /* TM_CORRECTION_* */
  uint32_t           owner;             /* device, or link */
  uint64_t           key;
  tm_correction_node node;
  int64_t            told_mean;         /* the estimate that prices were last told of */
  uint32_t           next_changed;      /* of those that the snapshot does not know yet */
  bool               is_changed;
  int64_t            work_factor;       /* of a bucket: its key's when it was last measured, TM_NO_WORK_FACTOR before that */
  int64_t            told_work_factor;
  tm_work_kind       work;              /* of a bucket, for people */
  uint32_t           size_log2;         /* of a bucket: its work */
} tm_correction_entry;

#define TM_NO_WORK_FACTOR INT64_MIN

/* Copies go from one memory to another. */
typedef struct tm_correction_link {
  tm_identity from;
  tm_identity to;
} tm_correction_link;

typedef struct tm_correction {
  tm_memory           *memory;
  tm_mutex             lock;            /* all but the atomics */
  tm_correction_entry *entries;
  uint32_t            *slots;           /* open addressing: 1 + index of an entry; twice as many as entries */
  uint32_t             count;
  uint32_t             capacity;
  uint32_t             first_changed;
  uint32_t             link_count;
  tm_correction_link  *links;
  _Atomic uint64_t     fresh_samples;   /* learned since they were last taken */
  _Atomic bool         is_frozen;       /* nothing that is learned is told */
  _Atomic uint64_t     generation;      /* of the snapshot */
} tm_correction;

/* What a measurement is about. */
typedef struct tm_correction_key {
  uint32_t    device;           /* inventory index */
  tm_op_class op_class;
  uint64_t    bucket;           /* see tm_correction_bucket_of */
  int64_t     work_factor;      /* log2 of what the core's count of work comes to, over what was declared */
} tm_correction_key;

tm_status tm_correction_init(tm_correction *correction, tm_memory *memory);
void      tm_correction_deinit(tm_correction *correction);

/* Operation, formats of its operands and the magnitude of its work, as one number. */
uint64_t tm_correction_bucket_of(const tm_operation *operation, const tm_work *work);

/* ---- the time of an operation ---- */

/* `operation` (NULL: not known) is what the bucket will be called.  A time of 0 was not measured. */
void tm_correction_learn(tm_correction *correction, const tm_correction_key *key, const tm_operation *operation,
                         uint64_t declared_ns, uint64_t measured_ns);

typedef struct tm_correction_estimate {
  int64_t  factor;              /* log2 of what to multiply a declared cost with */
  int64_t  least_factor;        /* log2 of what it may well turn out to be when more is known, whoever is right about its work */
  int64_t  try_factor;          /* log2 of what to expect of a try: where declaration and work disagree, between them */
  int64_t  spread;              /* standard deviation of `factor` */
  uint64_t samples;             /* measurements of this very bucket or, if it has none, of the nearest level that has some */
  uint64_t bucket_samples;
  uint64_t device_samples;
} tm_correction_estimate;

tm_correction_estimate tm_correction_look(tm_correction *correction, const tm_correction_key *key);

/* How a device's measured times differ from what it declared, over everything that ran there. */
typedef struct tm_correction_honesty {
  int64_t  mean;                /* log2 */
  int64_t  spread;              /* standard deviation of single measurements around it */
  uint64_t samples;
} tm_correction_honesty;

tm_correction_honesty tm_correction_honesty_of(tm_correction *correction, uint32_t device);

/* ---- what is paid once ---- */

#define TM_SETUP_UNIT_NS UINT64_C(1000000)      /* TM_CORRECTION_SETUP is beside this */

/* `key` says what, the same in every process.  Opening a device, a shared set-up, one of a kernel's own.  One that nobody
   declared counts once it was seen twice, if it took `shortest_ns` then: else it was something else that held the run up. */
void     tm_correction_learn_setup(tm_correction *correction, uint32_t device, uint64_t key, uint64_t declared_ns, uint64_t measured_ns,
                                   uint64_t shortest_ns);
uint64_t tm_correction_setup_ns(tm_correction *correction, uint32_t device, uint64_t key, uint64_t declared_ns);

/* ---- copies ---- */

#define TM_NO_LINK UINT32_MAX
#define TM_COPY_LATENCY_NS UINT64_C(5000)       /* TM_CORRECTION_LATENCY is beside this */

/* The link from one memory to another, made if it is new; TM_NO_LINK without memory for it. */
uint32_t tm_correction_link_of(tm_correction *correction, const tm_identity *from, const tm_identity *to);
void     tm_correction_learn_copy(tm_correction *correction, uint32_t link, uint64_t bytes, uint64_t measured_ns);
/* 0 bytes cost nothing. */
uint64_t tm_correction_copy_ns(tm_correction *correction, uint32_t link, uint64_t bytes);

/* ---- the snapshot, and what is kept on disk ---- */

/* Tells all that was learned now, frozen or not. */
void tm_correction_promote(tm_correction *correction);

uint32_t tm_correction_count(tm_correction *correction);
/* A copy of the entry at `index`; false past the last. */
bool tm_correction_at(tm_correction *correction, uint32_t index, tm_correction_entry *out_entry);
/* The link's two ends; false if there is no such link. */
bool tm_correction_link_at(tm_correction *correction, uint32_t link, tm_correction_link *out_link);
/* Takes in what was known before; tm_correction_promote makes it count. */
void tm_correction_merge(tm_correction *correction, const tm_correction_entry *known, bool is_reset, uint32_t doubt);
/* Moves to out_entry what is fresh in the entry at `index`: in node.fresh.  False where nothing is. */
bool tm_correction_take_fresh(tm_correction *correction, uint32_t index, tm_correction_entry *out_entry);
/* It could not be written: it is fresh again. */
void tm_correction_give_back(tm_correction *correction, const tm_correction_entry *taken);
/* Forgets everything about a device; TM_ANY_DEVICE: about all of them, and about copies. */
uint32_t tm_correction_forget(tm_correction *correction, uint32_t device);

#endif
