/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h - THE contract between Tensormorph Compute and an accelerator.  It and types.h are all that the author of a
 * backend reads; the built-in backends see nothing else either.
 *
 * A backend answers one question, "can you run this operation, how exactly, and at what cost?" (query), and runs what it
 * said yes to (prepare, launch).  It exports one function, `tm_plugin_query`, which TM_DEFINE_PLUGIN writes for it:
 *
 *     tm_plugin_query -> tm_plugin_header -> traits -> tm_accelerator_backend_plugin (a table of functions)
 *
 *     init -> device_info(0..n) -> [open] -> query -> prepare -> launch ... wait -> release -> [close] -> shutdown
 *
 * Only device_info, query, prepare and launch must be written (and release, if prepare allocates).  The host copies the
 * table and fills every other gap with a working default where one exists (said at the function), else with a function
 * that returns TM_UNSUPPORTED.
 *
 * AN ANSWER IS A PROMISE.  Where query said yes, prepare and launch may fail only for lack of resources
 * (TM_ERROR_NO_MEMORY, TM_BUSY), a moved epoch (TM_STALE, prepare only) or a lost device (TM_ERROR_DEVICE_LOST).  Any
 * other failure is counted, reported, and costs the backend its placement.  A launch never fails because of data.
 *
 * Threads.  [any] any thread, also several at once.  [host] one thread at a time for the whole backend.  [queue] one
 * thread at a time per queue; different queues concurrently.  A device flagged TM_DEVICE_OPENING_THREAD gets every call
 * that takes its tm_device, close included, from the thread that called open; device_info and query name a device by its
 * index and keep their own tags.
 *
 * Watched.  Calls of which a device has yet to come back a few times (the first runs of each operation with its formats, the
 * first of every function, init and shutdown always) come from threads of the host's own with a time limit, generous beside
 * the declared times, and with operands in memory of the host's own.  One that is not back by then is given up: the device
 * is not used again, neither it nor its backend gets close or shutdown, what the call was given is never freed, and if it
 * returns after all, the host's services do nothing for it once the context is gone.  A queue that says TM_BUSY for as long
 * is taken for a hang, too: the host has its work on it waited for meanwhile.
 *
 * Left.  A caller that is cancelled goes at once, from any watched call, and from an open or a prepare that was declared to
 * take 20 ms or more.  Its call keeps the time that it had; kernels, buffers and memory that it was given stay until it is
 * back and cancel says that nothing runs on its queue; a device that it opened stays open, and a kernel or a buffer that it
 * made is given back.  Where a context ends meanwhile, what was left gets 200 ms.  Beyond that it is let alone as if it hung
 * (no close, no shutdown), but held against nobody.
 *
 * Ownership.  Structs passed in belong to the caller and are only valid during the call, unless said otherwise.  Strings
 * and tables that a backend hands out are static for as long as its library is loaded (libraries are never unloaded).
 *
 * Layout.  No enum, bool, long or bit-field crosses the line.  Structs and tables grow at their end only, and start with
 * struct_size, set by whoever allocates them: read or write only that much.  Seven small structs do not and never change
 * within a major, because they lie in arrays or inside other structs, where a size of their own would help nobody:
 * tm_operand, tm_change, tm_binding, tm_ticket, tm_trait, tm_identity, tm_string.  (The sizes of attributes stand in
 * tm_operation, that of the plugin's header in its header_size.)  Bytes of an input struct beyond what you know must be
 * zero; else query refuses that operation with TM_REASON_DEMAND, and prepare, launch and the transfers return
 * TM_UNSUPPORTED.  Attributes likewise, with TM_REASON_ATTRIBUTE.  Flags come as facts (ignore unknown ones) and demands
 * (refuse unknown ones).
 *
 * Texts.  Every tm_string that a backend hands out is UTF-8; all but the messages of log and fail are without control characters,
 * line ends among them.  What is not is shown escaped, and said to be so.  A text of a device over 4096 bytes is none.
 *
 * The host's limits.  Refused as a whole: a plugin file whose table names a function that lies outside that file; a
 * plugin with a name (its own or an option's) over 64 bytes, a version, vendor, build id, default or help over 4096
 * bytes, more than 64 traits or 256 options, or a table over 65536 bytes; a backend one of whose devices has an unknown
 * flag, more than 64 memories, or a memory with an alignment over 2^21 or that is no power of two, or a granule over
 * 2^20.  Cut: devices of a backend to 256, queues of a device to 256, its memories to 8, the text of an answer to 256
 * bytes, a message of log or fail to 899.  A yes with a workspace over 2^46 bytes counts as a no; one with a cost or set-up
 * over 10^15 ns likewise, and as a broken promise, unless an operand is over 2^45 bytes: then the time is cut to that.
 * The cache of compiled kernels holds 64 MiB, of all backends together.
 *
 * Not used yet.  These are checked and passed on, and may be shown, but no host acts on them so far; fill them in where it
 * is cheap, and do not count on their effect.  Functions: buffer_import, copy, flush, memory_stats, get_extension.
 * Flags: TM_MEMORY_IMPORT and its two neighbours, TM_DEVICE_EXCLUSIVE_PROCESS,
 * TM_ANSWER_USES_UNIT, TM_ANSWER_GUESSED.  Of a memory: all spaces but space 0.  Of an answer: spread_ns, launch_ns,
 * moved_bytes, energy_nj.
 * Of a launch or transfer: the host sends no waits.
 *
 * A backend must not touch what belongs to the process: signal and terminate handlers, locale, working directory,
 * environment, standard streams, the floating-point mode (the host restores that one after a call).  It must not abort,
 * exit, throw, print, or come back twice (fork); it has no destructors and no atexit.
 */
#ifndef TENSORMORPH_PLUGIN_H
#define TENSORMORPH_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TM_ABI_MAJOR 0u         /* 0 = may still change; a host loads exactly its own major */
#define TM_ABI_MINOR 1u         /* grows when something is appended; a host loads every minor of its major */

/* A hash over every offset and size below, of the minor that a plugin was built with. */
#define TM_LAYOUT_FINGERPRINT UINT64_C(0x2bdb9294aaa6ab27)

/* Handles.  The backend defines the structs behind them as it likes; the host only carries the pointers. */
typedef struct tm_backend tm_backend;   /* one loaded backend, from init to shutdown */
typedef struct tm_device  tm_device;    /* one opened device */
typedef struct tm_kernel  tm_kernel;    /* a prepared operation: immutable, usable from any queue of its device */
typedef struct tm_buffer  tm_buffer;    /* device memory */

/* ------------------------------------------------------------------------------------------------ host services ---- */

#define TM_LOG_DEBUG   0u
#define TM_LOG_INFO    1u
#define TM_LOG_WARNING 2u
#define TM_LOG_ERROR   3u

#define TM_EVENT_EPOCH_MOVED 1u /* answers given before may differ now (memory pressure, power mode, a reset) */
#define TM_EVENT_DEVICE_LOST 2u

/* Runs part [begin, end) of a range on one of the host's threads.  lane < tm_host.lane_count; within one call of
   parallel_for no lane is in use twice at once, but two calls at a time (of two queues, say) both have a lane 0. */
typedef void (*tm_range_fn)(void *argument, uint64_t begin, uint64_t end, uint32_t lane);

/*
 * What the host does for a backend.  Valid from init until shutdown returns; call nothing of it afterwards.  Pass
 * `context` as the first argument.  All functions [any]; none is NULL.
 */
typedef struct tm_host {
  uint32_t struct_size;
  uint32_t lane_count;          /* threads that parallel_for may use, at least 1 */
  void    *context;
  /* Writes one line to the application's log. */
  void (*log)(void *context, uint32_t level, tm_string message);
  /* Says why the call that is running on this thread fails, and returns `status` so that it can be returned at once.
     native_code is the driver's own number, or 0.  The text is copied.  What is said outside a call, in a lane of
     parallel_for, in query or in a function without a status is dropped. */
  tm_status (*fail)(void *context, tm_status status, int64_t native_code, tm_string message);
  /* Memory counted against the application's limit; alignment is a power of two.  NULL when there is none; 0 bytes give
     a pointer too, to be freed like any other.  free takes the bytes that were asked for, and NULL. */
  void *(*alloc)(void *context, uint64_t bytes, uint64_t alignment);
  void  (*free)(void *context, void *memory, uint64_t bytes);
  /* Splits [0, count) at multiples of grain (0 is taken as 1) over the one pool that everybody shares and returns when
     all is done.  Runs inline, as lane 0, when called from inside a call and while another thread's call has the pool. */
  void (*parallel_for)(void *context, uint64_t count, uint64_t grain, tm_range_fn function, void *argument);
  /* Monotonic time. */
  uint64_t (*now_ns)(void *context);
  /* The user's value for one of the backend's declared options, or its default.  TM_ERROR_NOT_FOUND for an undeclared
     key.  The value stays valid until shutdown. */
  tm_status (*config_get)(void *context, tm_string key, tm_string *out_value);
  /* A named pointer that the application handed to this backend (an entry point, an existing device), or NULL. */
  void *(*config_pointer)(void *context, tm_string key);
  /* A cache for compiled kernels, keyed by this backend's build as well and kept as long as the host can.  get copies at
     most *inout_bytes and sets it to the size found; TM_ERROR_NOT_FOUND if there is none.  put may answer
     TM_ERROR_LIMIT. */
  tm_status (*cache_get)(void *context, tm_string key, void *out_data, uint64_t *inout_bytes);
  tm_status (*cache_put)(void *context, tm_string key, const void *data, uint64_t bytes);
  /* Tells that device `index` changed.  From now on its answers carry `epoch`, which must have grown.  prepare sees the
     epoch of an older answer in that answer, and may return TM_STALE. */
  void (*device_event)(void *context, uint32_t index, uint32_t event, uint64_t epoch);
  /* Marks a span in the application's trace: two lines of its log among those of the calls, where TENSORMORPH_TRACE=calls
     asks for them, else nothing.  end takes what begin returned. */
  uint64_t (*trace_begin)(void *context, tm_string name);
  void     (*trace_end)(void *context, uint64_t span);
} tm_host;

/* ------------------------------------------------------------------------------------------------------ devices ---- */

/* An option of a backend.  The user sets TENSORMORPH_<BACKEND>_<NAME>; unknown names are refused with a suggestion. */
#define TM_OPTION_TEXT    1u
#define TM_OPTION_INTEGER 2u
#define TM_OPTION_SWITCH  3u    /* "0" or "1" */
typedef struct tm_option {
  uint32_t  struct_size;
  uint32_t  type;               /* TM_OPTION_*; the host refuses a value that is not of the type */
  tm_string name;               /* lower_snake */
  tm_string default_value;
  tm_string help;               /* one sentence */
} tm_option;

/* 16 opaque bytes.  Equal and non-zero means the same thing, whoever says it. */
typedef struct tm_identity {
  uint8_t bytes[16];
} tm_identity;

/* Well-known identities: the host's cores (a resource) and the host's memory (a memory). */
#define TM_HOST_CORES  { { 'h','o','s','t','-','c','o','r','e','s',0,0,0,0,0,0 } }
#define TM_HOST_MEMORY { { 'h','o','s','t','-','m','e','m','o','r','y',0,0,0,0,0 } }

#define TM_MEMORY_HOST_POINTER     0x1u /* a tm_buffer of this space IS its host address; create, import and destroy default to that */
#define TM_MEMORY_IMPORT           0x2u /* buffer_import takes host memory without a copy */
#define TM_MEMORY_IMPORT_PAGES     0x4u /* ... if it starts at a page and spans whole pages */
#define TM_MEMORY_IMPORT_READ_ONLY 0x8u /* ... and read-only mappings too */

/*
 * A place where operands lie.  Space 0 is where launches expect them.  If it is the host's memory (TM_HOST_MEMORY with
 * TM_MEMORY_HOST_POINTER), operands are used where the application has them: then a tm_buffer may be any address that is a
 * multiple of `alignment`, not only one that buffer_create gave.
 */
typedef struct tm_memory_space {
  uint32_t    struct_size;
  uint32_t    flags;                    /* TM_MEMORY_* (facts) */
  tm_identity identity;                 /* equal and non-zero: one memory, so a copy between the two costs nothing */
  tm_string   name;                     /* for people */
  uint64_t    total_bytes;
  uint64_t    largest_buffer_bytes;     /* 0 = no limit known; a yes to an operand that is larger claims too much */
  uint64_t    largest_binding_bytes;    /* 0 = no limit known */
  uint32_t    alignment;                /* of a buffer's start, where 64 is not enough; power of two; 0 counts as 1 */
  uint32_t    offset_granule;           /* binding offsets are multiples of this; at least 1 */
  uint32_t    store_granule;            /* the device writes whole units of this many bytes: outputs are padded to it; at least 1 */
  uint32_t    reserved;
} tm_memory_space;

#define TM_DEVICE_SYNCHRONOUS       0x1u /* launch and transfers compute before they return */
#define TM_DEVICE_OPENING_THREAD    0x2u /* every call that takes the tm_device must come from the thread that opened it */
#define TM_DEVICE_EXCLUSIVE_PROCESS 0x4u /* one process at a time can open it; a second open in that process may be TM_BUSY, too */

typedef struct tm_device_info {
  uint32_t    struct_size;
  uint32_t    flags;                    /* TM_DEVICE_* (demands on the host) */
  tm_identity uuid;                     /* this very device, also after a restart, and no other one of the
                                           backend's; all zero: made from the file's bytes, build id and index */
  tm_identity resource;                 /* equal and non-zero: the same silicon, so one queue of time (TM_HOST_CORES) */
  tm_string   name;                     /* for people; no decision reads it */
  tm_string   driver_version;           /* for people, and to tell measured costs apart */
  uint64_t    epoch;                    /* grows whenever answers may change */
  uint64_t    open_ns;                  /* estimated time of open, priced as set-up */
  uint64_t    cost_model_id;            /* changes when the cost formulas change: learned corrections are then dropped */
  uint32_t    queue_count;              /* queues are numbered from 0; 0 counts as 1 */
  uint32_t    memory_count;             /* at least 1 */
  const tm_memory_space *const *memories;
} tm_device_info;

typedef struct tm_memory_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t total_bytes;                 /* 0 = unknown, likewise below */
  uint64_t free_bytes;                  /* for anybody, now */
  uint64_t used_bytes;                  /* by this process through this backend */
} tm_memory_stats;

/* ------------------------------------------------------------------------------------------------------ queries ---- */

/* Facts about a whole operation.  Unknown ones may be ignored. */
#define TM_OPERATION_ALL_CONTIGUOUS 0x1u  /* every operand is */
#define TM_OPERATION_ALL_SAME_SHAPE 0x2u  /* all operands have equal dims */
#define TM_OPERATION_ALL_SAME_FORMAT 0x4u /* all operands have one format */
/* Demands.  Refuse an operation with one that you do not know (TM_REASON_DEMAND). */
#define TM_OPERATION_RUN_TO_RUN 0x10000u  /* equal bits every time */
#define TM_OPERATION_FACTS  0xffffu       /* the bits that are facts */

/*
 * An operation to judge or to prepare.  operands: inputs, then outputs, in the order of the operation's line in types.h.  They
 * describe memory space 0 of the device; copies are the host's business.  The host has checked shapes and formats against the
 * operation's line and collapsed what can be collapsed, so a backend need not: a condition is bool, indices are i32 or i64,
 * operands that share a format have it.  But where the line leaves a choice, later hosts have more formats: say yes only to those
 * that you know, unless bits are merely moved.  Broadcast operands have equal dims, with strides of 0 on the axes that they are
 * repeated on (TM_OPERATION_ALL_SAME_SHAPE; they are not contiguous).  In memory of the device's own an operand lies in a buffer
 * that the backend made, at a multiple of offset_granule, whatever its `alignment` says: judge that only for more than the granule.
 */
typedef struct tm_operation {
  uint32_t struct_size;
  uint32_t op;                          /* TM_OP_* */
  uint32_t version;                     /* of the operation's meaning; unknown means refuse */
  uint32_t flags;                       /* TM_OPERATION_*: facts below 0x10000, demands above */
  uint32_t worst_numerics;              /* the weakest TM_NUMERICS_* class that the caller accepts */
  uint32_t attribute_bytes;             /* 0 if there are none */
  uint32_t input_count;
  uint32_t output_count;
  const tm_operand *operands;           /* input_count + output_count of them */
  const void       *attributes;         /* the operation's struct of types.h; NULL if there are none */
} tm_operation;

/* Why not (level 0).  At least one bit is set in a refusal. */
#define TM_REASON_OPERATION  0x001u     /* this operation, or this version of it */
#define TM_REASON_FORMAT     0x002u     /* a format of `operand` */
#define TM_REASON_RANK       0x004u
#define TM_REASON_SHAPE      0x008u     /* an extent, a divisibility, a broadcast */
#define TM_REASON_LAYOUT     0x010u     /* strides */
#define TM_REASON_ALIGNMENT  0x020u
#define TM_REASON_SIZE       0x040u     /* larger than the device can take at once */
#define TM_REASON_ATTRIBUTE  0x080u
#define TM_REASON_NUMERICS   0x100u     /* only in a weaker class than the caller accepts */
#define TM_REASON_RESOURCES  0x200u     /* not now: memory, power */
#define TM_REASON_DEMAND     0x400u     /* a demand that it does not know or cannot meet */
#define TM_REASON_CONSTANT   0x800u     /* `operand` must be constant */

/*
 * What the caller could change.  On a refusal all of them together make it acceptable; on a yes they make it cheaper.  The
 * host may make them, and asks about the changed operation before it does; where that is refused with further changes, it
 * makes those too, once.  Of one operand they are applied in the order of these numbers, whatever their order in the list.
 * But a quantization is made first of all, and what it leaves, a product of integers, is asked about anew; then one split,
 * and its parts are asked about anew (up to seven splits, one in another).
 */
#define TM_CHANGE_CONTIGUOUS  1u        /* make `operand` contiguous */
#define TM_CHANGE_ALIGN       2u        /* align its addresses to `value` bytes */
#define TM_CHANGE_PAD         3u        /* pad `axis` to a multiple of `value`, of all operands that share the axis; the host
                                           pads with what does not change the result, and crops what is too much of it */
#define TM_CHANGE_CAST        4u        /* cast it to `format` */
#define TM_CHANGE_DEQUANTIZE  5u        /* dequantize it to `format` */
#define TM_CHANGE_SPLIT_ABOVE 6u        /* split `axis` into parts of at most `value` elements, of all operands that share it */
#define TM_CHANGE_REDUCE_RANK 7u        /* present it with rank `value` or less */
#define TM_CHANGE_CONVERT     8u        /* convert it, a constant, to the private `format`, in which it takes `value` bytes.
                                           The device must claim TM_OP_CONVERT from the one to the other.  The host keeps the
                                           result for further launches as long as it has room.  `value` is meant for the
                                           operand after all its other changes; where it is not, those are made first, and
                                           the device is asked again */
#define TM_CHANGE_QUANTIZE    9u        /* a float operand a or b of a matmul: to integers of `format` (i8) with one f32 scale a
                                           row of a or a column of b, so that the device multiplies integers into an i32 and
                                           the host rescales that; asks for both operands, or for the one that is a float.
                                           Only where the caller accepts N3; the host checks each product, and numbers that
                                           integers are no good for go elsewhere.  Where K is too long as well, ask for this
                                           and not for SPLIT_ABOVE along K: sums of integers can be cut afterwards */
typedef struct tm_change {
  uint32_t kind;                        /* TM_CHANGE_* */
  uint32_t operand;                     /* index into tm_operation.operands */
  uint32_t axis;
  uint32_t format;
  uint64_t value;
} tm_change;

#define TM_MAX_CHANGES 8

#define TM_ANSWER_USES_UNIT 0x1u        /* a matrix or dot-product unit is used; for people only */
#define TM_ANSWER_GUESSED   0x2u        /* the cost formula is a guess: give it little weight */

/*
 * What a device says of one operation.  The host zeroes it, sets struct_size and sets operand to TM_NO_OPERAND; level 0 is
 * a refusal.  A yes with cost 0 says that the cost is not known: the host then makes an estimate of its own.
 * Time is that of a warm run on the device itself, operands in place: no copies, no queueing, no first use.
 */
typedef struct tm_answer {
  uint32_t  struct_size;
  uint32_t  level;                      /* TM_LEVEL_* */
  uint32_t  numerics;                   /* TM_NUMERICS_* */
  uint32_t  numerics_flags;             /* TM_NUMERICS_RUN_TO_RUN and its neighbours */
  double    numerics_bound;             /* meaning, and what is too large to be one, set by the class (types.h) */
  uint32_t  growth;                     /* TM_GROWTH_*, class N2 */
  uint32_t  accumulator;                /* TM_FORMAT_*, class N2 */
  uint32_t  flags;                      /* TM_ANSWER_* (facts) */
  uint32_t  reasons;                    /* TM_REASON_*; not 0 when refused */
  uint32_t  operand;                    /* the operand that the reasons are about; TM_NO_OPERAND if none */
  uint32_t  change_count;               /* entries of changes[] */
  tm_string text;                       /* a static sentence for people; may be empty */
  uint64_t  cost_ns;                    /* median, from a declared formula; a backend never measures itself */
  uint64_t  spread_ns;                  /* 90th percentile minus median */
  uint64_t  launch_ns;                  /* the part of cost_ns that does not depend on size */
  uint64_t  setup_ns;                   /* once, before the first launch (compile, pack tables) */
  uint64_t  setup_key;                  /* operations with an equal non-zero key share one set-up */
  uint64_t  workspace_bytes;            /* scratch the host must bind as the last binding, aligned like a buffer; 0: no such binding */
  uint64_t  moved_bytes;                /* between device memory and the compute units */
  uint64_t  energy_nj;                  /* nanojoule */
  uint64_t  epoch;                      /* the device's epoch that this answer holds for; 0: the one the host knows */
  uint64_t  alias_mask;                 /* bit (output * 8 + input): that output may be bound to that input's exact memory (inputs and outputs 0..7) */
  tm_change changes[TM_MAX_CHANGES];
} tm_answer;

#define TM_NO_OPERAND 0xffffffffu

/* ------------------------------------------------------------------------------------------- launches, transfers ---- */

/*
 * A place in a queue's order.  A queue is first in, first out, and completes in order, so "value n is complete" means
 * everything up to n is, with or without error.  Value 0 is always complete; values of a queue are dense and grow by 1.
 */
typedef struct tm_ticket {
  uint32_t queue;
  uint32_t reserved;
  uint64_t value;
} tm_ticket;

/*
 * Where an operand lies.  buffer + offset is its element with index 0 on every axis.  With a negative stride other elements
 * lie below it, and where the buffer is host memory also below `buffer`; dims and strides alone say how far.
 */
typedef struct tm_binding {
  tm_buffer *buffer;
  uint64_t   offset;                    /* bytes */
  uint64_t   length;                    /* bytes from offset upwards that hold all that lies there, whole store units included;
                                           with a negative stride it may be larger, so it bounds nothing then */
} tm_binding;

/* Wait lists name earlier tickets of queues of the same device only; a ticket not yet issued is TM_ERROR_ARGUMENT. */
typedef struct tm_launch {
  uint32_t          struct_size;
  uint32_t          queue;
  tm_kernel        *kernel;
  const tm_binding *bindings;           /* operands in order, then the workspace if one was declared */
  const tm_ticket  *waits;
  uint32_t          binding_count;
  uint32_t          wait_count;
} tm_launch;

/* upload: host -> destination; download: source -> host; copy: source -> destination. */
typedef struct tm_transfer {
  uint32_t         struct_size;
  uint32_t         queue;
  tm_buffer       *destination;
  uint64_t         destination_offset;
  tm_buffer       *source;
  uint64_t         source_offset;
  void            *host;                /* stays valid, and unchanged on upload, until the ticket completes */
  uint64_t         bytes;
  const tm_ticket *waits;
  uint32_t         wait_count;
  uint32_t         reserved;
} tm_transfer;

#define TM_WAIT_POLL    UINT64_C(0)
#define TM_WAIT_FOREVER UINT64_MAX

/* -------------------------------------------------------------------------------------------------- the backend ---- */

/*
 * The trait "tensormorph.accelerator-backend", revision 1.  All functions are called after init and before shutdown.
 * Every one that returns a status may report its reason through tm_host.fail.  Statuses not named may not be returned.  A
 * device that was lost is not used any more, but still gets cancel for its queues, release, buffer_destroy and close for
 * what it had.
 */
typedef struct tm_accelerator_backend_plugin {
  uint32_t struct_size;
  uint32_t option_count;
  const tm_option *const *options;      /* what config_get understands; static, readable before init */

  /* [host] Once, first.  Finds drivers, allocates state; opens no device.  `host` outlives the backend.  A missing driver
     is no error of the process: return TM_ERROR_NO_DEVICE with the reason through fail, and the backend is listed as
     unavailable.  TM_ERROR_ARGUMENT: a value that the user gave one of its options means nothing; the user is told and
     nothing is loaded.  Without such an option it is a failure like the others, and the backend is listed as refused.
     It and device_info also run in a trial process before, and must say the same there and here while nothing changed.
     Default: the handle is NULL.   TM_OK, TM_ERROR_NO_DEVICE, TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY, TM_ERROR_INTERNAL */
  tm_status (*init)(const tm_host *host, tm_backend **out_backend);
  /* [host] Last, all devices closed.  Joins its threads.  Not called at process exit, nor after a call or work that never
     ended, nor once it hung itself in an earlier process.  Default: nothing. */
  void (*shutdown)(tm_backend *backend);

  /* [host] MANDATORY.  Describes device `index`, counted from 0; cheap, no kernel runs.   TM_OK, TM_END */
  tm_status (*device_info)(tm_backend *backend, uint32_t index, tm_device_info *out_info);
  /* [host] Opens it for launches.  Default: the device handle is the backend handle.
     TM_OK, TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST, TM_BUSY (another process has it) */
  tm_status (*open)(tm_backend *backend, uint32_t index, tm_device **out_device);
  /* [host] Nothing of the device is pending or allocated any more.  Default: nothing. */
  void (*close)(tm_device *device);

  /* [any] MANDATORY.  Judges `count` operations for device `index`, which need not be open.  Pure: no compiling, no
     allocation, microseconds; the same question in the same epoch gets the same answer.  The host has checked an operation against
     its line in types.h, but whatever bytes attributes have, query comes back; any answer will do for what no contract allows.
     TM_OK, TM_ERROR_DEVICE_LOST */
  tm_status (*query)(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                     tm_answer *const *out_answers);
  /* [any] MANDATORY.  Makes the operation runnable; may compile.  `answer` is exactly the one that query gave for it, its
     epoch filled in: TM_STALE if that is over.  One operation may be prepared often, also concurrently: for other
     requirements of the caller, after the host dropped what it had, as a step of a lowering.  Each kernel is released by
     itself.  A compiler that refuses what query said yes to in good faith is no broken promise: the backend moves the
     device's epoch (device_event) and returns TM_STALE with the compiler's text; asked again, it refuses that operation
     with TM_REASON_RESOURCES, and the host looks elsewhere.  In the trial process it is killed after 5 s beside three times
     the answer's setup_ns, and the plugin is refused.
     TM_OK, TM_UNSUPPORTED (bytes or flags that it does not know), TM_STALE, TM_ERROR_ARGUMENT (only for an operation that
     query refuses), TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST */
  tm_status (*prepare)(tm_device *device, const tm_operation *operation, const tm_answer *answer,
                       tm_kernel **out_kernel);
  /* [any] No launch of the kernel is pending: the host keeps it while work of the device's is left behind.  Default: nothing. */
  void (*release)(tm_device *device, tm_kernel *kernel);

  /* [any] Memory in space `space`; `bytes` may be 0, and then wants a handle, too.
     Default on TM_MEMORY_HOST_POINTER spaces: the host's allocator.
     TM_OK, TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST */
  tm_status (*buffer_create)(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer);
  /* [any] Makes host memory a buffer without a copy; it outlives the buffer.  Default on TM_MEMORY_HOST_POINTER spaces:
     the handle is the address.   TM_OK, TM_UNSUPPORTED (the host copies instead), TM_ERROR_NO_MEMORY */
  tm_status (*buffer_import)(tm_device *device, uint32_t space, void *memory, uint64_t bytes, uint32_t read_only,
                             tm_buffer **out_buffer);
  /* [any] No work on it is pending, as for release.  `imported` tells which of the two made it.  Default as above. */
  void (*buffer_destroy)(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported);

  /* [queue] Enqueue a transfer; never wait for the device.  What is copied inside the call may leave the ticket untouched:
     value 0 is complete.  Default on TM_MEMORY_HOST_POINTER spaces: memcpy now.
     TM_OK, TM_UNSUPPORTED (bytes that it does not know), TM_BUSY, TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST */
  tm_status (*upload)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
  tm_status (*download)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
  tm_status (*copy)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);

  /* [queue] MANDATORY.  Enqueues one kernel; all structs, waits and bindings are copied before it returns.  Never waits for the
     device: a full queue is TM_BUSY with nothing enqueued.  Only a TM_DEVICE_SYNCHRONOUS device computes inside the
     call and may leave the ticket untouched; from any other a ticket of value 0 is a broken promise.  Inputs are never
     written; outputs lie apart from inputs except where alias_mask allowed it.  No allocation beyond the declared
     workspace.
     TM_OK, TM_UNSUPPORTED (bytes that it does not know), TM_BUSY, TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST */
  tm_status (*launch)(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket);
  /* [queue] Makes enqueued work start without a wait; wait implies it.  Default: nothing.   TM_OK, TM_ERROR_DEVICE_LOST */
  tm_status (*flush)(tm_device *device, uint32_t queue);
  /* [any] Waits until all tickets are complete; timeout TM_WAIT_POLL asks only.  Gives the first error among them: the
     code of the work that failed, TM_ERROR_PREDECESSOR for what came after it in its queue, TM_ERROR_CANCELLED for what
     a cancel kept from running, also when it is asked after that cancel.  A ticket that was never given out is
     TM_ERROR_ARGUMENT, at once.  A failed queue stays failed until cancel.  May be repeated: the host waits in pieces of
     20 ms until the work is over, so that a caller who wants to go is seen, and gives up work that never ends.  A timeout
     that has passed is no error and no completion; wait may be somewhat late then, but does not go on to the end of work that
     takes much longer.  A ticket completes as lost only when host memory is no longer touched.  TM_PENDING only once the
     timeout has passed, so never from TM_WAIT_FOREVER; that and any other positive status is a broken promise, after which the
     device is not used again and buffers that its work may still touch are not destroyed.  Default: TM_OK (for synchronous
     devices).   TM_OK, TM_PENDING, TM_ERROR_* */
  tm_status (*wait)(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns);
  /* [any] Work of the queue that has not started completes as cancelled, running work finishes; then the queue is usable
     again and old errors are forgotten: new work does not fail for them, and their tickets may be TM_OK from then on.  What
     the last cancel that found something kept from running stays TM_ERROR_CANCELLED.  Default: TM_OK.
     TM_OK, TM_BUSY (still running: ask again), TM_ERROR_DEVICE_LOST */
  tm_status (*cancel)(tm_device *device, uint32_t queue);

  /* [any] Default: TM_UNSUPPORTED.   TM_OK, TM_UNSUPPORTED, TM_ERROR_DEVICE_LOST */
  tm_status (*memory_stats)(tm_device *device, uint32_t space, tm_memory_stats *out_stats);
  /* [any] A further table by name ("vendor.area") and revision, NULL if there is none; its functions take a device.
     Default: NULL. */
  const void *(*get_extension)(tm_backend *backend, tm_string name, uint32_t revision);
} tm_accelerator_backend_plugin;

/* ---------------------------------------------------------------------------------------------------- the entry ---- */

/* Something a plugin offers.  Unknown ids and revisions are ignored by the host. */
typedef struct tm_trait {
  tm_string   id;
  uint32_t    revision;
  uint32_t    reserved;
  const void *table;
} tm_trait;

#define TM_TRAIT_ACCELERATOR_BACKEND "tensormorph.accelerator-backend"
#define TM_TRAIT_ACCELERATOR_BACKEND_REVISION 1u

#define TM_PLUGIN_MAGIC UINT64_C(0x006870726f6d6d74)    /* "tmmorph" */

/* How the library was built; a host refuses a plugin whose answer differs from its own. */
#define TM_BUILD_POINTER_64        0x01u
#define TM_BUILD_BIG_ENDIAN        0x02u
#define TM_BUILD_ADDRESS_SANITIZER 0x04u
#define TM_BUILD_THREAD_SANITIZER  0x08u
#define TM_BUILD_MEMORY_SANITIZER  0x10u

/* This header is frozen for ever, over all majors. */
typedef struct tm_plugin_header {
  uint64_t  magic;                      /* TM_PLUGIN_MAGIC */
  uint32_t  header_size;                /* sizeof(tm_plugin_header) */
  uint32_t  abi_major;
  uint32_t  abi_minor;
  uint32_t  build_flags;                /* TM_BUILD_* */
  uint64_t  layout_fingerprint;         /* TM_LAYOUT_FINGERPRINT of the plugin's own plugin.h */
  tm_string name;                       /* lower_snake; option names and user choices are built from it */
  tm_string version;
  tm_string vendor;
  tm_string build_id;                   /* differs between builds that may behave differently */
  uint64_t  trait_count;
  const tm_trait *traits;
} tm_plugin_header;

/* The one exported function.  Pure: no allocation, no device, no thread; static data; callable at any time, often.
   NULL if it cannot serve a host of this version. */
typedef const tm_plugin_header *(*tm_plugin_query_fn)(uint32_t host_abi_major, uint32_t host_abi_minor);

#ifndef TM_PLUGIN_ENTRY                 /* the build gives each built-in its own name for it */
#define TM_PLUGIN_ENTRY tm_plugin_query
#endif
#ifndef TM_PLUGIN_BUILD_ID              /* the build should give a hash or a revision */
#define TM_PLUGIN_BUILD_ID __DATE__ " " __TIME__
#endif

#if defined(__GNUC__)
#define TM_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define TM_PLUGIN_EXPORT
#endif

#if defined(__has_feature)
#define TM_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TM_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TM_HAS_FEATURE(address_sanitizer)
#define TM_BUILD_SANITIZERS_ TM_BUILD_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__) || TM_HAS_FEATURE(thread_sanitizer)
#define TM_BUILD_SANITIZERS_ TM_BUILD_THREAD_SANITIZER
#elif TM_HAS_FEATURE(memory_sanitizer)
#define TM_BUILD_SANITIZERS_ TM_BUILD_MEMORY_SANITIZER
#else
#define TM_BUILD_SANITIZERS_ 0u
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TM_BUILD_ENDIANNESS_ TM_BUILD_BIG_ENDIAN
#else
#define TM_BUILD_ENDIANNESS_ 0u
#endif
#define TM_BUILD_FLAGS ((sizeof(void *) == 8 ? TM_BUILD_POINTER_64 : 0u) | TM_BUILD_ENDIANNESS_ | TM_BUILD_SANITIZERS_)

/* A tm_string of a string literal, as an initializer. */
#define TM_STRING(literal) { literal, sizeof(literal) - 1 }

#ifdef __cplusplus
#define TM_EXTERN_C_ extern "C"
#else
#define TM_EXTERN_C_ extern
#endif

/* Writes the entry of a plugin that offers one backend: name, version and vendor are string literals, `table` is a
   tm_accelerator_backend_plugin object with static storage. */
#define TM_DEFINE_PLUGIN(name, version, vendor, table)                                                                \
  TM_EXTERN_C_ TM_PLUGIN_EXPORT const tm_plugin_header *TM_PLUGIN_ENTRY(uint32_t host_abi_major, uint32_t host_abi_minor); \
  const tm_plugin_header *TM_PLUGIN_ENTRY(uint32_t host_abi_major, uint32_t host_abi_minor) {                          \
    static const tm_trait traits[] = {                                                                                 \
      { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), TM_TRAIT_ACCELERATOR_BACKEND_REVISION, 0, &(table) } };               \
    static const tm_plugin_header header = {                                                                           \
      TM_PLUGIN_MAGIC, sizeof(tm_plugin_header), TM_ABI_MAJOR, TM_ABI_MINOR, TM_BUILD_FLAGS, TM_LAYOUT_FINGERPRINT,    \
      TM_STRING(name), TM_STRING(version), TM_STRING(vendor), TM_STRING(TM_PLUGIN_BUILD_ID), 1, traits };              \
    (void)host_abi_minor;                                                                                              \
    return host_abi_major == TM_ABI_MAJOR ? &header : NULL;                                                            \
  }

/* Whether `pointer` (struct or table of another build) reaches as far as `member`. */
#define TM_HAS_MEMBER(pointer, type, member) \
  ((pointer)->struct_size >= offsetof(type, member) + sizeof(((type *)0)->member))

#ifdef __cplusplus
}
#endif

#endif /* TENSORMORPH_PLUGIN_H */
