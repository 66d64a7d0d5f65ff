/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subject.h - the backend under test with a host of its own around it: the contract's table, host services, one opened
 * device.  No scheduler, no inventory: what is found out here is the backend's alone.
 */
#ifndef CONFORMANCE_SUBJECT_H
#define CONFORMANCE_SUBJECT_H

#include <stdbool.h>

#include "base/pool.h"
#include "conformance/last_call.h"
#include "conformance/lent.h"
#include "conformance/question.h"
#include "tensormorph/plugin.h"

#define SUBJECT_SETTINGS 64
#define SUBJECT_FOUND 8

/* "name=value" of the backend's options. */
typedef struct subject_settings {
  const char *words[SUBJECT_SETTINGS];
  uint32_t    count;
} subject_settings;

typedef struct subject {
  tm_host         services;
  tm_memory       memory;
  tm_pool        *pool;                 /* NULL: ranges run one after the other, on changing lanes, from the back */
  tm_accelerator_backend_plugin own;    /* complete */
  tm_accelerator_backend_plugin table;  /* the same, behind functions that lend it what it is given (lent.h) */
  bool            host_makes_buffers;   /* a buffer is its address */
  subject_settings settings;
  const combination_list *combinations;
  last_call      *calls;                /* may be NULL */
  size_t          subject_length;       /* of what they are about, without what is strange about it */
  tm_backend     *backend;
  tm_device      *device;
  uint32_t        device_index;
  uint32_t        far_bytes;            /* operands lie so much further behind the start of their buffers */
  tm_device_info  info;
  tm_memory_space space;
  _Atomic uint64_t announced_epoch;     /* by device_event */
  _Atomic uint32_t largest_event_index; /* of a device, likewise */
  _Atomic uint64_t largest_epoch;       /* that an answer had */
  _Atomic tm_status query_status;        /* of the last question */
  _Atomic uint64_t allocation_count;    /* made by the backend so far */
  _Atomic uint64_t allocations_left;    /* before the host has no more memory */
  uint32_t        found[SUBJECT_FOUND]; /* of each operation that it claims the first combination, as far as errands looked for it */
  uint32_t        found_count;
  bool            found_all;            /* there are no more */
  char            text[200];            /* what it said through fail last */
  char            logged[200];          /* its last line in the log */
} subject;

typedef struct subject_options {
  const tm_accelerator_backend_plugin *table;   /* as tm_plugin_table_accept gives it */
  const tm_plugin_header *header;       /* NULL: only the table is known */
  subject_settings settings;
  uint32_t         device_index;
  uint32_t         threads;             /* 0: serial ranges on 3 lanes */
  uint64_t         allocations_plus_one; /* that the host has memory for; 0: no limit */
  const combination_list *combinations; /* of all operations; NULL where no errands are run */
  last_call       *calls;               /* where each call is noted; may be NULL */
  void           (*after_init)(void *context);  /* between init and the calls that follow it; may be NULL */
  void           (*before_open)(void *context, subject *s);  /* once the device is described, and closed still; may be NULL */
  void            *context;
} subject_options;

/* A function of the backend under test, noted before it is called; to be called by this thread, before any of another backend. */
#define SUBJECT_CALL(s, function)                                                                        \
  (last_call_note((s)->calls, offsetof(tm_accelerator_backend_plugin, function)), lent_through(&(s)->own), \
   (s)->table.function)

/* TM_ERROR_NO_DEVICE when there is none; `text` says more. */
tm_status subject_open(subject *s, const subject_options *options);
void      subject_close(subject *s);

/* Of a device, by what it says, wherever that lies. */
uint64_t subject_description_hash(const tm_device_info *info);

/* What the calls that follow are about. */
void subject_work_on(subject *s, const question *q);
/* ... and what is strange about the next one of them, after "with", until it is worked on something again. */
void subject_ask_strangely(subject *s, const char *what);

/* One question.  A query that fails refuses for lack of resources. */
tm_answer subject_ask(subject *s, const tm_operation *operation);
/* Whether it announced a later epoch than the answer's: prepare may then say that the answer is stale. */
bool subject_has_moved(subject *s, const tm_answer *answer);
tm_answer subject_ask_question(subject *s, const question *q);
/* The status that query returns, and the answer. */
tm_status subject_query(subject *s, const tm_operation *operation, tm_answer *out_answer);

/* Memory in space 0 with the bytes of `image`, which on a device that works in host memory is the buffer itself. */
tm_status subject_buffer(subject *s, void *image, uint64_t bytes, tm_buffer **out_buffer);
/* Brings the bytes back into the image. */
tm_status subject_collect(subject *s, tm_buffer *buffer, void *image, uint64_t bytes);
void      subject_buffer_free(subject *s, tm_buffer *buffer, uint64_t bytes);
/* Any transfer, waited for; TM_BUSY is tried again. */
typedef tm_status (*subject_transfer_fn)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status subject_transfer(subject *s, subject_transfer_fn function, const tm_transfer *transfer, tm_ticket *out_ticket);
/* Enqueues, starts and waits. */
tm_status subject_launch(subject *s, uint32_t queue, tm_kernel *kernel, const tm_binding *bindings, uint32_t count);

#endif
