/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory.h - everything that was found: backends with their state, devices with their memories.  Filled once when a
 * context is made and fixed in number and order from then on; what changes later (states, epochs, counters) is atomic.
 */
#ifndef TM_PLUGIN_INVENTORY_H
#define TM_PLUGIN_INVENTORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/arena.h"
#include "base/dynamic_library.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/thread.h"
#include "plugin/kernel_cache.h"
#include "plugin/search_path.h"
#include "plugin/watch.h"
#include "tensormorph/plugin.h"
#include "tensormorph/tensormorph.h"

typedef struct tm_inventory tm_inventory;

#define TM_STUCK_REASON_BYTES 192

/* What a backend understands, and what was chosen. */
typedef struct tm_backend_option {
  uint32_t    type;                     /* TM_OPTION_* */
  const char *name;
  const char *default_value;
  const char *help;
  const char *value;                    /* in force */
} tm_backend_option;

/* What a backend did wrong in its trial: it is not asked for this again.  See health.h for what happens later. */
typedef struct tm_backend_fault {
  uint32_t    device;                   /* index in the backend */
  uint32_t    op;
  uint32_t    format;                   /* of the first operand */
  const char *text;
} tm_backend_fault;

#define TM_RECORD_NAME_BYTES 40u

typedef struct tm_backend_slot {
  tm_inventory *inventory;
  uint32_t      index;
  uint32_t      first_device;
  uint32_t      device_count;
  _Atomic uint32_t state;               /* TM_BACKEND_* */
  const char   *name;                   /* unique: of several with one own name, the later ones get a number */
  const char   *own_name;               /* NULL until it has told it */
  const char   *told_name;              /* it was refused after it had told this one; NULL: it was not */
  const char   *version;
  const char   *vendor;
  const char   *build_id;
  const char   *origin;
  const char   *note;                   /* what is odd about it, though it is used */
  const char   *odd_text;               /* where it told what is no text, here and now; NULL: nowhere */
  _Atomic(const char *) reason;
  tm_backend_option *options;
  uint32_t      option_count;
  uint32_t      pointer_count;
  tm_named_pointer *pointers;           /* the application's, for this backend */
  tm_backend_fault *faults;
  uint32_t      fault_count;
  bool          initialized;
  bool          is_untried;             /* loaded without a trial, as the note says */
  _Atomic bool  is_asleep;              /* listed from a record: nothing of it is loaded or called (wake.h) */
  const char   *path;                   /* of its file; NULL: built in */
  tm_plugin_query_fn entry;             /* of a built-in */
  tm_file_identity identity;            /* of the file that was listed */
  tm_identity   content;                /* a hash of its file, where has_content */
  bool          has_content;
  char          record[TM_RECORD_NAME_BYTES];   /* its name in the inventory's folder of records; "": none */
  bool          may_recover;            /* it could not start for want of something that the next start may find */
  uint64_t      wake_ns;                /* what loading and init took the last time */
  uint64_t      trial_ns;               /* what its trial took, here and now; 0: there was none */
  char          wake_reason[256];       /* why waking failed */
  tm_host       host;
  tm_backend   *handle;
  tm_mutex      opening;                /* of its devices, one at a time */
  _Atomic uint32_t left_count;          /* calls that must come one at a time and whose caller went */
  _Atomic bool  is_stuck;               /* a call never came back: it is not shut down, and nothing of it is freed */
  _Atomic bool  is_kept_up;             /* it hung in shutdown in an earlier process: it is not called */
  char          stuck_reason[TM_STUCK_REASON_BYTES];    /* if its state is quarantined; fixed before that is set */
  tm_accelerator_backend_plugin table;
  const tm_accelerator_backend_plugin *untraced;        /* what `table` logs the calls of; NULL: nothing is logged */
} tm_backend_slot;

/* Calls that name a device, as far as it must prove itself with each. */
typedef enum tm_call_kind {
  TM_CALL_OPEN, TM_CALL_CLOSE, TM_CALL_QUERY, TM_CALL_PREPARE, TM_CALL_RELEASE, TM_CALL_BUFFER_CREATE, TM_CALL_BUFFER_DESTROY,
  TM_CALL_UPLOAD, TM_CALL_DOWNLOAD, TM_CALL_LAUNCH, TM_CALL_WAIT, TM_CALL_CANCEL, TM_CALL_KINDS
} tm_call_kind;
#define TM_QUERY_KINDS 128u

/* Longer lists of a device are cut, and the cut is logged. */
#define TM_MOST_MEMORIES 8u

/* Lies on the stack of whoever waits for a queue. */
typedef struct tm_queue_waiter {
  struct tm_queue_waiter *next;
} tm_queue_waiter;

typedef struct tm_device_slot {
  tm_backend_slot *backend;
  uint32_t     index;                   /* in the inventory */
  uint32_t     index_in_backend;
  const char  *name;                    /* "backend:index" */
  const char  *description;
  const char  *driver_version;
  char         uuid_text[33];
  char         resource_text[33];
  tm_device_info  info;                 /* sound: counts and alignments in range; uuid is no other device's */
  tm_identity  told_uuid;               /* as the backend has it; all zero: it has none */
  tm_identity  own_uuid;                /* that, or one made up */
  bool         is_twin;                 /* another device has that, too */
  tm_memory_space memories[TM_MOST_MEMORIES];
  bool         is_host_memory;          /* space 0 is host memory: operands are used where they lie */
  _Atomic uint32_t state;               /* TM_DEVICE_* */
  _Atomic uint64_t epoch;
  _Atomic uint64_t launch_count;
  _Atomic uint32_t doubted_runs;        /* so many more are all measured: what it takes may have changed */
  _Atomic uint64_t violation_count;
  const char      *excluded_reason;     /* NULL: it is not */
  bool             is_watched;          /* its first calls of each kind are; not those of the last resort */
  bool             is_checked;          /* some of what it computes is computed again: all but the library's own code on the host's cores */
  _Atomic uint64_t checked_ns;          /* the reference's price of that, and of how many parts of results */
  _Atomic uint64_t checked_count;
  _Atomic uint64_t wrong_count;         /* times that it was wrong */
  _Atomic bool     is_stuck;            /* a call or its work may never end: it and what it may still touch stay for ever */
  char             stuck_reason[TM_STUCK_REASON_BYTES];         /* fixed before is_stuck is set */
  tm_mutex         lock;                /* queue_freed, trials, and what was left */
  tm_condition     queue_freed;
  struct tm_trial *trials;
  _Atomic(struct tm_lasting_mark *) lasting;    /* for calls that are no work, once they are trusted; see crash_marks.h */
  struct tm_parked *parked;             /* what work that was left behind may still touch */
  struct tm_watched_call *left_calls;   /* calls that were left behind, at most one a queue, and those without a queue */
  _Atomic uint32_t *queues;             /* info.queue_count of TM_QUEUE_*: see device_queue.h */
  _Atomic uint32_t queue_waiters;
  struct tm_queue_waiter *queue_line;   /* under `lock`: who waits for a queue, in the order of coming */
  _Atomic uint32_t unfinished_count;    /* queues with work that was left behind, and calls without a queue that were */
  _Atomic uint64_t unfinished_until_ns; /* when that is late */
  _Atomic uint8_t  clean_calls[TM_CALL_KINDS];                  /* that came back, up to one more than TM_TRIAL_RUNS */
  _Atomic uint8_t  clean_queries[TM_QUERY_KINDS];               /* likewise, by a hash of the operation's number */
  _Atomic(tm_device *) handle;          /* set once opened */
  _Atomic bool     is_open;
  _Atomic uint64_t opened_ns;           /* what opening took, until somebody learns from it */
  tm_worker       *thread;              /* NULL: calls come from any thread */
} tm_device_slot;

/* Told of a call that never came back and that no run of an operation will tell of: `op` is what was asked about, TM_OP_NONE for
   the device as such, or TM_WORK_SHUTDOWN. */
typedef void (*tm_stuck_fn)(void *context, tm_device_slot *device, uint32_t op, const char *what);
#define TM_WORK_SHUTDOWN UINT32_MAX

struct tm_inventory {
  tm_memory       *memory;
  _Atomic(tm_pool *) pool;              /* another one once a call that never came back has it */
  tm_clock         clock;               /* what runs and copies are measured with */
  tm_stuck_fn      stuck;               /* NULL: nobody is told */
  void            *stuck_context;
  tm_log           log;
  tm_search_path   search_path;         /* empty unless folders were searched */
  tm_arena         arena;               /* names and reasons; only written while the context is made */
  tm_kernel_cache  kernel_cache;
  tm_watch         watch;
  struct tm_crash_marks *crash_marks;   /* NULL: none are kept */
  tm_backend_slot **backends;
  tm_device_slot  **devices;
  uint32_t         backend_count;
  uint32_t         device_count;
  const char      *records;             /* folder of what was found the last time; NULL: nothing is kept */
  tm_mutex         waking;              /* one backend at a time */
  tm_mutex         left_wakes_lock;
  struct tm_wake_request *left_wakes;   /* whose callers went */
  _Atomic uint32_t asleep_count;
  _Atomic uint64_t woken_ns;            /* what waking those cost that work was worth */
  _Atomic uint64_t next_wake_ns;        /* work that the next one is worth, all before it included */
  bool             is_trial;            /* this process is there to try its backends, and is watched itself */
  _Atomic bool     is_whole;            /* filled; until then what backends tell of their devices is not looked up */
  _Atomic bool     is_held;             /* a waking that was left behind goes on: it stays for ever */
  _Atomic bool     is_gone;             /* the context is: who comes back late from a call gets nothing any more */
  _Atomic uint64_t query_count;         /* operations that devices were asked about */
  _Atomic uint64_t prepare_count;       /* kernels prepared */
  _Atomic uint64_t generation;          /* moves when any answer may have changed: epochs, states */
};

/* Puts something between the host and a backend: may replace functions of a complete table. */
typedef void (*tm_interpose_fn)(void *interpose_context, tm_accelerator_backend_plugin *table);

/* What the user asked for, as given to tm_context_create. */
typedef struct tm_inventory_request {
  const tm_context_options *options;    /* never NULL */
  bool search_folders;                  /* environment and system folder, too */
  struct tm_crash_marks *crash_marks;   /* NULL: none are kept; outlives the inventory */
  bool is_trial;                        /* only the named files, or trial_builtin, here and now: this process is there to try them */
  const char     *trial_builtin;        /* is_trial; NULL: none */
  const char     *trial_name;           /* is_trial: the name that settings mean it by; NULL: its own */
  tm_interpose_fn interpose;            /* is_trial; NULL: nothing */
  void           *interpose_context;
} tm_inventory_request;

/* Loads built-ins, named files and, if asked, what lies in the search path, in the order: named files, built-ins, search
   path, the reference; of one name all are used, told apart by a number (name, name~2); a built-in's name is its own.  A
   backend that cannot be used is listed with its reason; only the user's own mistakes (unknown device, option) fail.  What
   was made by then is left in *out_inventory, to be destroyed.   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY */
tm_status tm_inventory_create(tm_memory *memory, tm_pool *pool, tm_log log, const tm_inventory_request *request,
                              tm_inventory **out_inventory, tm_error *error);
/* Closes all devices and shuts all backends down; no work is pending.  The lists stay. */
void tm_inventory_stop(tm_inventory *inventory);
/* The same, and frees it.  False: a call or work never came back, so that the inventory with its memory, pool and log must
   stay for ever; what comes back later finds that out by itself.  Of one with a backend that is kept up the lists stay, for
   the same reason. */
bool tm_inventory_destroy(tm_inventory *inventory);

/* A slot at the end of the list; NULL without memory.  For those that fill the inventory. */
tm_backend_slot *tm_inventory_add_backend(tm_inventory *inventory, const char *name, const char *origin);
/* Only while the inventory is filled. */
void tm_inventory_set_state(tm_backend_slot *slot, uint32_t state, const char *reason);

/* Takes a device out of use after a broken promise or loss; `state` is TM_DEVICE_LOST or TM_DEVICE_QUARANTINED. */
void tm_inventory_retire(tm_device_slot *device, uint32_t state);

#endif
