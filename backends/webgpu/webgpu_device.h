/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu_device.h - an opened device: its queues, what is on its way, its staging memory and its compiled kernels.
 *
 * One lock guards an instance and all its devices, and every call of the interface is made under it: not every
 * implementation may be called from two threads.  Callbacks come inside such calls; they only set flags in `flight`, which
 * outlives the device if a callback is still owed, and webgpu_pump acts on them.
 *
 *   launch, upload, download -> the queue's open encoder -> flush: submission -> work done, buffers mapped -> retired
 */
#ifndef WEBGPU_DEVICE_H
#define WEBGPU_DEVICE_H

#include <stdatomic.h>

#include "native_lock.h"
#include "webgpu_adapters.h"
#include "webgpu_library.h"
#include "webgpu_standing.h"

#define WEBGPU_QUEUES 2u
#define WEBGPU_SUBMISSIONS 48u          /* on their way at once, of all queues */
#define WEBGPU_READS 96u                /* parts of downloads on their way */
#define WEBGPU_CHUNKS 24u               /* staging buffers that are kept */
#define WEBGPU_CHUNK_BYTES (UINT64_C(1) << 20)
#define WEBGPU_READ_LAYOUTS 9u          /* inputs of a kernel: 0..8 */
#define WEBGPU_WRITE_LAYOUTS 5u         /* outputs and workspace: 0..4 */
#define WEBGPU_ERROR_TEXT 512u

/*
 * What an implementation tells unasked: errors and the loss.  Not every one tells the loss of a device that was closed,
 * so nobody waits for it: it is written here, which lives as long as the instance, and ignored if the device has been
 * closed since (generation is its second argument).
 */
typedef struct webgpu_trouble {
  native_lock      lock;                /* a leaf: another thread of the implementation may come here */
  uintptr_t        generation;          /* grows with each open and close */
  _Atomic uint32_t is_lost;
  uint32_t         error_count;
  wapi_enum        error_type;          /* of the last one */
  char             error_text[WEBGPU_ERROR_TEXT];
} webgpu_trouble;

struct tm_backend {
  const tm_host  *host;
  native_lock     lock;
  webgpu_library  library;
  wapi_instance   instance;
  webgpu_adapters adapters;
  webgpu_trouble  troubles[WEBGPU_MOST_ADAPTERS];
  webgpu_standing standings[WEBGPU_MOST_ADAPTERS];
};

struct tm_buffer {
  wapi_buffer handle;
  uint64_t    bytes;                    /* whole words */
  uint64_t    number;                   /* never used twice */
};

/* What a callback says. */
typedef struct webgpu_reply {
  _Atomic uint32_t is_asked;            /* the callback is still owed */
  _Atomic uint32_t status;              /* 0: none yet */
} webgpu_reply;

typedef enum webgpu_chunk_state {
  WEBGPU_CHUNK_NONE, WEBGPU_CHUNK_READY, WEBGPU_CHUNK_IN_USE, WEBGPU_CHUNK_MAPPING
} webgpu_chunk_state;

/* A staging buffer that is used again.  One that is written to is mapped while READY. */
typedef struct webgpu_chunk {
  wapi_buffer        handle;
  webgpu_chunk_state state;
  uint32_t           is_read;
  uint32_t           submission;
  webgpu_reply       reply;
} webgpu_chunk;

/* Part of a download. */
typedef struct webgpu_read {
  wapi_buffer      handle;
  webgpu_chunk    *chunk;               /* NULL: the buffer is this part's own */
  uint64_t         skip, bytes, span;   /* in the staging buffer; span is what was copied there */
  void            *host;
  uint32_t         is_used;
  uint32_t         submission;
  webgpu_reply     reply;
} webgpu_read;

typedef struct webgpu_submission {
  uint64_t         first, last;         /* tickets */
  uint64_t         failed;              /* the first that failed; 0: none so far */
  tm_status        status;
  uint32_t         queue;
  uint32_t         is_used;
  uint32_t         next;                /* of the queue, plus one */
  uint64_t         staged_bytes;        /* in buffers of its own */
  webgpu_reply     reply;
} webgpu_submission;

/* What callbacks write to.  references: the device's own, and one for each callback that is owed. */
typedef struct webgpu_flight {
  _Atomic uint32_t  references;
  _Atomic uint32_t  is_opening;         /* the callback of open is still owed */
  wapi_device       opened;
  _Atomic uint32_t  scopes_asked;       /* callbacks of error scopes that are still owed */
  uintptr_t         scope_round;        /* of the last scopes that were closed; what comes of earlier ones is ignored */
  wapi_enum         scope_type;         /* of them */
  char              scope_text[WEBGPU_ERROR_TEXT];
  webgpu_submission submissions[WEBGPU_SUBMISSIONS];
  webgpu_read       reads[WEBGPU_READS];
  webgpu_chunk      chunks[WEBGPU_CHUNKS];
} webgpu_flight;

typedef struct webgpu_queue {
  uint64_t issued, completed;
  uint64_t failed;                      /* first ticket that failed; 0: none */
  tm_status status;                     /* of it */
  uint64_t cancelled_first, cancelled_last;
  uint32_t oldest, newest;              /* submissions on their way, plus one; 0: none */
  uint32_t open;                        /* the submission that is being built, plus one */
  uint32_t work_count;                  /* in the open one */
  wapi_command_encoder encoder;
  wapi_compute_pass    pass;            /* open in the encoder, or NULL */
  webgpu_chunk *chunk;                  /* that uploads of the open submission are put into */
  char         *chunk_bytes;
  uint64_t      chunk_used;
} webgpu_queue;

typedef struct webgpu_module webgpu_module;

struct tm_device {
  tm_backend       *backend;
  const webgpu_api *api;
  webgpu_adapter   *adapter;
  uint32_t          index;
  uint32_t          is_lost_told;
  wapi_device       handle;
  wapi_queue        native_queue;
  webgpu_flight    *flight;
  webgpu_trouble   *trouble;
  webgpu_queue      queues[WEBGPU_QUEUES];
  webgpu_module    *modules;
  uint64_t          buffer_count;       /* ever made */
  uint64_t          staged_bytes;       /* of buffers that are not chunks, on their way */
  uint64_t          used_bytes;
  wapi_bind_group_layout layouts[WEBGPU_READ_LAYOUTS][WEBGPU_WRITE_LAYOUTS];
  wapi_pipeline_layout   pipeline_layouts[WEBGPU_READ_LAYOUTS][WEBGPU_WRITE_LAYOUTS];
};

/* ---- webgpu_device.c; everything from here on is called under the backend's lock unless it says otherwise ---- */

/* Takes the lock itself. */
tm_status webgpu_device_open(tm_backend *backend, uint32_t index, tm_device **out_device);
void      webgpu_device_close(tm_device *device);

/* Lets callbacks come, and nothing else. */
void webgpu_device_poll(tm_device *device);
/* Until `flag` is no more than `most`: 1, or time is up: 0. */
int webgpu_device_poll_until(tm_device *device, _Atomic uint32_t *flag, uint32_t most, uint64_t patience_ns);

/* ---- webgpu_flight.c ---- */

webgpu_flight *webgpu_flight_create(const tm_host *host);
/* One reference for each callback that is asked for. */
void webgpu_flight_hold(webgpu_flight *flight);
/* Whether it was the last reference; the owner then frees it. */
int  webgpu_flight_drop(webgpu_flight *flight);
void webgpu_flight_free(const tm_host *host, webgpu_flight *flight);

void webgpu_on_lost(const wapi_device *device, wapi_enum reason, wapi_string message, void *trouble, void *generation);
void webgpu_on_error(const wapi_device *device, wapi_enum type, wapi_string message, void *trouble, void *generation);
void webgpu_on_device(wapi_enum status, wapi_device device, wapi_string message, void *flight, void *unused);
void webgpu_on_scope(wapi_enum status, wapi_enum type, wapi_string message, void *flight, void *round);
/* A callback that fills the reply, which lies in the flight. */
wapi_status_call webgpu_call_for(webgpu_flight *flight, webgpu_reply *reply);

/* Errors that the implementation told without being asked, so far. */
uint32_t webgpu_error_count(webgpu_trouble *trouble);
/* From now on the device is lost. */
void webgpu_trouble_lose(webgpu_trouble *trouble, const char *why);
/* A new generation, without errors. */
uintptr_t webgpu_trouble_renew(webgpu_trouble *trouble);

/* ---- webgpu_error.c ---- */

tm_status webgpu_fail(const tm_host *host, tm_status status, const char *text);
/* Reports `status` with the text of the last uncaptured error. */
tm_status webgpu_fail_told(tm_device *device, tm_status status, const char *what);

/* Begins to catch errors; end gives TM_OK, TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST or `otherwise`, said through fail. */
void      webgpu_scope_begin(tm_device *device);
tm_status webgpu_scope_end(tm_device *device, const char *what, tm_status otherwise);

/* ---- webgpu_buffer.c; the three take the lock themselves ---- */

tm_status webgpu_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer);
void      webgpu_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported);
tm_status webgpu_memory_stats(tm_device *device, uint32_t space, tm_memory_stats *out_stats);

/* A buffer for one use, mapped if asked; NULL if there is none. */
wapi_buffer webgpu_scratch(tm_device *device, wapi_flags usage, uint64_t bytes, int is_mapped);

/* ---- webgpu_queue.c ---- */

/* Makes the queue ready for one more piece of work behind `waits`: *out_encode is 0 where the work will not run, because
   earlier work failed.   TM_OK, TM_BUSY, TM_ERROR_ARGUMENT, TM_ERROR_DEVICE_LOST */
tm_status webgpu_queue_begin(tm_device *device, uint32_t index, const tm_ticket *waits, uint32_t wait_count, int *out_encode);
/* Ends what begin began: the ticket is the work's.  error_count: before the work was encoded. */
void webgpu_queue_end(tm_device *device, uint32_t index, int encoded, uint32_t error_count, tm_ticket *out_ticket);
wapi_compute_pass webgpu_queue_pass(tm_device *device, uint32_t index);
wapi_command_encoder webgpu_queue_encoder(tm_device *device, uint32_t index);     /* with no pass open */
void webgpu_queue_submit(tm_device *device, uint32_t index);
/* Polls, and completes what is done. */
void webgpu_pump(tm_device *device);
/* Drops what was not submitted. */
void webgpu_queue_abandon(tm_device *device, uint32_t index);

/* The contract's functions; they take the lock themselves. */
tm_status webgpu_flush(tm_device *device, uint32_t index);
tm_status webgpu_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns);
tm_status webgpu_cancel(tm_device *device, uint32_t index);

/* ---- webgpu_transfer.c ---- */

tm_status webgpu_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status webgpu_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status webgpu_copy(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);

/* ---- webgpu_module.c ---- */

/* What a module is made of; equal ones are compiled once. */
typedef struct webgpu_module_key {
  const char *const *shaders;
  const char *prologue;
  uint32_t    prologue_length;
  uint32_t    needs;
  uint32_t    reads, writes;            /* bindings after the parameters */
} webgpu_module_key;

/* A compiled entry point; it lives as long as the device.
   TM_OK, TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST, `refused` (with the compiler's text) */
tm_status webgpu_pipeline_get(tm_device *device, const webgpu_module_key *key, const char *name, const char *entry,
                              tm_status refused, wapi_compute_pipeline *out_pipeline);
wapi_bind_group_layout webgpu_layout_get(tm_device *device, uint32_t reads, uint32_t writes);
void webgpu_modules_release(tm_device *device);

/* ---- webgpu_launch.c; they take the lock themselves ---- */

tm_status webgpu_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel);
void      webgpu_release(tm_device *device, tm_kernel *kernel);
tm_status webgpu_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket);

#endif
