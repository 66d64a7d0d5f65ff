/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensormorph.h - the application's side of Tensormorph Compute: open checkpoints, run tensor operations on whatever
 * accelerator is there, start long jobs and read their results while they run, and ask why something ran where it did.
 *
 *     tm_context -> tm_checkpoint -> tm_tensor -> tm_run            one operation, placed by capability and cost
 *                                 -> tm_job_start_stats -> rows     long work, in the background
 *                -> tm_job_start_check -> rows                      what is wrong with checkpoints
 *                -> tm_merge_plan -> tm_job_start_merge -> rows     one checkpoint of several
 *                -> tm_job_start_diff -> rows                       where two checkpoints differ
 *                -> tm_graph                                        operations that belong together, checked as they are added
 *                     -> tm_plan -> tm_plan_run                     placed once, run any number of times
 *                -> tm_explain                                      every candidate, its cost, and the reason
 *
 * Everything hangs off a context; there is no global state but the guard for mapped files (TM_CONTEXT_MAP_FILES).  Create
 * or open gives the caller an object that it must destroy or close; children (checkpoints, tensors, jobs, explanations, graphs)
 * go before their context, views before their tensor, file tensors and jobs before their checkpoint.  destroy and close
 * accept NULL.  Pointers in filled structs belong to the object asked and live as long as it does.  Structs start with
 * struct_size, set by the caller (= sizeof); only that much is read or written, and what the library does not know of a
 * longer one must be zero, as must `reserved` in options.  A status below 0 is an error; its text is in the tm_error passed to that
 * call (may be NULL).  Outputs are written only on success, unless said otherwise.
 *
 * Threads: nothing belongs to the thread that made it.  [any thread] at the head of a section means that its functions may
 * be called from any number of threads at once, on the same object too; what makes an exception is named there.  A function
 * that destroys or closes is called once, when no other call on that object runs or follows.  What is pointed to stays
 * unchanged by others during a call.
 */
#ifndef TENSORMORPH_TENSORMORPH_H
#define TENSORMORPH_TENSORMORPH_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)           /* what is declared here is what the shared library exports */
#pragma GCC visibility push(default)
#endif

#define TM_VERSION_MAJOR 0
#define TM_VERSION_MINOR 1
#define TM_VERSION_PATCH 0

/* [any thread] "0.1.0", of the library that is running. */
const char *tm_version(void);
/* [any thread] "ok", "corrupt", ...; never NULL. */
const char *tm_status_text(tm_status status);

/* ------------------------------------------------------------------------------------------------------ context ---- */

/* [any thread] tm_context_destroy is the exception: all calls with the context have returned. */
typedef struct tm_context tm_context;

#define TM_CONTEXT_MAP_FILES     0x1u   /* map checkpoints instead of reading them, where the system allows it.  Installs a
                                           process-wide SIGBUS guard while a mapping exists, so that a file truncated
                                           meanwhile is TM_ERROR_CHANGED and not a signal; other faults go to the old handler.
                                           With a state_folder, what plugins crash in after their trial is noticed, too */
#define TM_CONTEXT_LOAD_PLUGINS  0x2u   /* also load plugins from the folders in TENSORMORPH_PLUGIN_PATH, the plugin folder of
                                           the place where the library lies, and that which it was built for;
                                           without it only built-in backends and plugin_paths are loaded */
#define TM_CONTEXT_REPRODUCIBLE  0x4u   /* accept bit-equal results (N0) only, whatever the operation's default is */
#define TM_CONTEXT_STRICT        0x8u   /* every run and job is strict: see tm_run_options */

/* One value for an option of a backend.  Unknown backends and options are errors with a suggestion. */
typedef struct tm_setting {
  const char *backend;
  const char *name;
  const char *value;
} tm_setting;

/* A pointer for a backend: an entry point or object of the application's own (which names: see the backend's options). */
typedef struct tm_named_pointer {
  const char *backend;
  const char *name;
  void       *pointer;
} tm_named_pointer;

/* Zero everywhere is a good default.  All is copied; strings are NUL-terminated UTF-8. */
typedef struct tm_context_options {
  uint32_t struct_size;
  uint32_t flags;                       /* TM_CONTEXT_* */
  uint32_t thread_count;                /* threads of the one pool, the caller's included; 0: one a core; at most 4 a core, or 16 */
  uint32_t max_open_files;              /* of a checkpoint; 0: an eighth of what the process may */
  uint64_t max_memory_bytes;            /* of this context's own allocations (mappings not counted); 0: no limit */
  uint64_t max_header_bytes;            /* of a checkpoint's header; 0: 100,000,000 */
  uint32_t worst_numerics_plus_one;     /* 0: each operation's default; else 1 + TM_NUMERICS_* */
  uint32_t plugin_path_count;
  const char *const *plugin_paths;      /* plugin files to load; a bad one is listed as refused, never fatal */
  const char *const *devices;           /* use only these: a backend's name, or name:index.  The reference stays */
  const char *const *excluded_devices;  /* never these, "reference" included; an excluded backend is not even loaded */
  uint32_t device_count;
  uint32_t excluded_device_count;
  const tm_setting       *settings;
  const tm_named_pointer *pointers;
  uint32_t setting_count;
  uint32_t pointer_count;
  /* NULL: the C library's.  Must be thread-safe; alignment is a power of two. */
  void *(*alloc)(void *allocator_context, uint64_t bytes, uint64_t alignment);
  void  (*free)(void *allocator_context, void *memory, uint64_t bytes);
  void   *allocator_context;
  /* NULL: dropped.  Called from any thread, several at once; level 0 debug, 1 info, 2 warning, 3 error. */
  void (*log)(void *log_context, uint32_t level, const char *message);
  void  *log_context;
  /* Where to keep what is worth knowing next time: what a plugin was seen to offer, and which promises were broken.
     Created if missing, shared by any number of processes.  NULL: nothing is kept.  While a plugin is on trial, a file
     running-<process>-<n> in it says with what: the second process that ends without removing its own is taken for one that
     the plugin crashed, unless one that ended well was between the two.  With TM_CONTEXT_MAP_FILES it also says what plugins
     from files are in after their trial, at no system call a run.  A program that ends itself on a signal removes those of its
     own process before. */
  const char *state_folder;
  /* How long a plugin may take for a call that says nothing of its duration before it is given up; work that is expected to
     take long gets more.  A queue that stays full for as long is given up, too.  At least 50 ms; 0: 20 s. */
  uint64_t patience_ns;
} tm_context_options;

/* Lists backends and their devices; opens none.  What a plugin was seen to offer is taken from the state folder as long as
   nothing that it may depend on has changed, and the plugin is then loaded when first needed.  options may be NULL.
   TM_ERROR_ARGUMENT (unknown option, device or backend, with a suggestion; a list that is counted but not given, or has a
   hole), TM_ERROR_NO_MEMORY */
tm_status tm_context_create(const tm_context_options *options, tm_context **out_context, tm_error *error);
/* All children are gone.  Where a plugin did not come back from a call, what it may still touch is never freed: memory of an
   allocator of the application's own must then stay until the process ends.  The same goes for calls and work that a
   cancelled job left behind, if they are not over within 200 ms: so whoever was cancelled may go at once. */
void tm_context_destroy(tm_context *context);

/* Which backends' calls this process is in, by its files in a state folder: "name (launch)", separated by commas; "" if none, or
   none that was on trial.  It needs no context and is for whoever has to say why a process ends: a plugin that calls exit does
   so from within such a call.  `out_text` has room for `capacity` bytes, at least 1; what does not fit is cut. */
void tm_running_calls_describe(const char *state_folder, char *out_text, uint64_t capacity);

typedef struct tm_memory_usage {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t used_bytes;
  uint64_t peak_bytes;
  uint64_t limit_bytes;                 /* 0: none */
} tm_memory_usage;
void tm_context_memory_usage(const tm_context *context, tm_memory_usage *out_usage);

/* --------------------------------------------------------------------------------------------- backends, devices ---- */

/* [any thread] How many there are, their names and texts are fixed for a context; states and counters are those of the
   moment, and may have moved when the call returns. */

#define TM_BACKEND_READY       0u
#define TM_BACKEND_UNAVAILABLE 1u       /* loaded, but no device or driver: reason */
#define TM_BACKEND_REFUSED     2u       /* not loaded or not accepted: reason */
#define TM_BACKEND_QUARANTINED 3u       /* broke a promise, or hung: reason */
#define TM_BACKEND_EXCLUDED    4u       /* by the user's word */

typedef struct tm_backend_description {
  uint32_t    struct_size;
  uint32_t    state;                    /* TM_BACKEND_* */
  const char *name;                     /* unique: of several with one name the later ones are called name~2 ... */
  const char *version;
  const char *vendor;
  const char *build_id;
  const char *origin;                   /* "built-in" or the file's path */
  const char *reason;                   /* why it is not ready; "" if it is */
  uint32_t    device_count;
  uint32_t    option_count;
  const char *note;                     /* what is odd about it, though it is used: threads that it leaves behind, ...; "" if nothing */
  uint32_t    is_untried;               /* it came without a trial in a process of its own, for want of one; the note says why */
  uint32_t    trial_ms;                 /* what its trial took as the context was made; 0: it was not tried then */
} tm_backend_description;

/* TM_OK, TM_END past the last. */
tm_status tm_backend_describe(tm_context *context, uint32_t backend, tm_backend_description *out_description);

typedef struct tm_option_description {
  uint32_t    struct_size;
  uint32_t    type;                     /* 1 text, 2 integer, 3 switch */
  const char *name;
  const char *default_value;
  const char *value;                    /* in force */
  const char *help;
} tm_option_description;
/* TM_OK, TM_END (past the last backend, past its last option; one that is not loaded has none) */
tm_status tm_backend_option_describe(tm_context *context, uint32_t backend, uint32_t option, tm_option_description *out_description);

#define TM_DEVICE_READY       0u
#define TM_DEVICE_LOST        1u
#define TM_DEVICE_QUARANTINED 2u
#define TM_DEVICE_EXCLUDED    3u

typedef struct tm_device_description {
  uint32_t    struct_size;
  uint32_t    state;                    /* TM_DEVICE_* */
  uint32_t    backend;                  /* index for tm_backend_describe */
  uint32_t    memory_count;
  const char *name;                     /* "<backend>:0": how the user names it */
  const char *description;              /* the device's own words */
  const char *driver_version;
  const char *reason;                   /* why it is not ready; "" if it is */
  const char *uuid;                     /* 32 hexadecimal digits */
  const char *resource;                 /* 32 hexadecimal digits; equal: the same silicon */
  uint32_t    queue_count;
  uint32_t    opened;                   /* 1 once something ran on it */
  uint64_t    epoch;
  uint64_t    launch_count;             /* operations run so far */
  uint64_t    violation_count;          /* broken promises held against it: the sum of its violations' counts */
  /* How far its declared costs are from what was measured, over everything that ran there, in earlier processes too. */
  double      cost_factor;              /* measured over declared, the geometric mean; 1: nothing was measured */
  double      cost_spread;              /* standard deviation of single measurements around it, as a factor; 1: none */
  uint64_t    cost_samples;             /* measurements */
} tm_device_description;
/* TM_OK, TM_END past the last. */
tm_status tm_device_describe(tm_context *context, uint32_t device, tm_device_description *out_description);

typedef struct tm_memory_description {
  uint32_t    struct_size;
  uint32_t    is_host;                  /* 1: the host's own memory, so nothing is copied */
  const char *name;
  uint64_t    total_bytes;
  uint64_t    largest_buffer_bytes;     /* 0: no limit known */
  uint64_t    largest_binding_bytes;    /* 0: no limit known */
  uint32_t    alignment;
  uint32_t    offset_granule;
} tm_memory_description;
/* TM_OK, TM_END (past the last device, past its last memory) */
tm_status tm_device_memory_describe(tm_context *context, uint32_t device, uint32_t memory, tm_memory_description *out_description);

/* A folder in which plugins were looked for, whether it exists or not, in the order in which they were; the text lives as long as
   the context.   TM_OK, TM_END past the last (there is none without TM_CONTEXT_LOAD_PLUGINS) */
tm_status tm_plugin_folder_describe(tm_context *context, uint32_t folder, const char **out_path);

/* A kind of work that a device is not asked for any more, since it broke its promise about it: it failed, hung, or a process
   ended meanwhile.  Where a state folder is given they are remembered until the plugin's build changes. */
typedef struct tm_violation_description {
  uint32_t    struct_size;
  uint32_t    device;                   /* index for tm_device_describe */
  const char *device_name;
  uint32_t    op;                       /* TM_OP_NONE: the device as such */
  uint32_t    remembered;               /* 1: it was broken before this context was made, too */
  const char *op_name;                  /* "" for the device as such */
  const char *formats;                  /* of the operands ("f32,q4_0,f32"); "": all */
  const char *reason;
  uint64_t    count;
} tm_violation_description;
/* TM_OK, TM_END past the last. */
tm_status tm_violation_describe(tm_context *context, uint32_t violation, tm_violation_description *out_description);
/* Forgets all that is held against a backend or one of its devices, also what is remembered on disk and of a backend that is
   not loaded; a quarantined device is used again, unless it hung in this context.  What was found in a backend's trial, a
   refusal included, is forgotten by the backend's name, and it is tried anew when the next context is created.  out_count:
   what was forgotten; may be NULL.
   TM_ERROR_ARGUMENT (no name), TM_ERROR_NOT_FOUND (no such name, and nothing held against it) */
tm_status tm_context_forgive(tm_context *context, const char *name, uint32_t *out_count, tm_error *error);

/* --------------------------------------------------------------------------------------------------- profile ---- */

/* [any thread] What was learned of costs by measuring.  Where there is a state folder it is read when the context is made
   and written when it is destroyed, and now and then before; any number of processes share it and lose nothing to each other. */

#define TM_LEARNED_DEVICE    1u         /* of all operations on a device */
#define TM_LEARNED_CLASS     2u         /* of operations that are alike */
#define TM_LEARNED_OPERATION 3u         /* of one, with its formats and the magnitude of its work */
#define TM_LEARNED_SETUP     4u         /* what is paid once, beside what was declared of it: of a device */
#define TM_LEARNED_ONE_SETUP 5u         /* of one of them: time_ns */
#define TM_LEARNED_LATENCY   6u         /* of copies from one memory to another: time_ns */
#define TM_LEARNED_RATE      7u         /* beside the rate that is assumed */
#define TM_LEARNED_COPY      8u         /* of copies of one size, beside what the two come to */
#define TM_LEARNED_WORK      9u         /* of a class, beside the library's own count of the work */

typedef struct tm_learned_description {
  uint32_t    struct_size;
  uint32_t    kind;                     /* TM_LEARNED_* */
  uint32_t    device;                   /* index for tm_device_describe; TM_ANY_DEVICE for copies */
  uint32_t    reserved;
  const char *device_name;              /* "" for copies */
  char        subject[128];             /* "add f32,f32,f32 2^20", "matmul", "host -> name:0"; "" for a device as such */
  double      factor;                   /* measured over expected */
  double      spread;                   /* standard deviation of single measurements, as a factor */
  uint64_t    sample_count;
  uint64_t    time_ns;                  /* see the kinds; else 0 */
} tm_learned_description;
/* In no particular order; what is learned meanwhile is added at the end.   TM_OK, TM_END past the last */
tm_status tm_learned_describe(tm_context *context, uint32_t index, tm_learned_description *out_description);
/* What is wrong with what the state folder held at the start, and was left out, which the log was told, too: one sentence; "" if
   nothing.  It lives as long as the context. */
const char *tm_context_profile_note(const tm_context *context);
/* Writes what was learned to the state folder now.   TM_ERROR_IO, TM_BUSY (another process has it for too long),
   TM_UNSUPPORTED (it was written by a later version), TM_ERROR_NO_MEMORY; without a state folder nothing happens */
tm_status tm_context_save_profile(tm_context *context, tm_error *error);
/* Forgets what was learned of a device, or of all of a backend's, here and in the state folder; NULL: everything.
   out_count: entries; may be NULL.   TM_ERROR_NOT_FOUND (no such name), TM_ERROR_IO, ... */
tm_status tm_context_reset_profile(tm_context *context, const char *name, uint32_t *out_count, tm_error *error);
/* Writes all that is in the state folder, of devices that are not here too, to a file; reads such a file and takes over what
   it knows from more measurements than are known here.  TM_ERROR_ARGUMENT (no path), TM_ERROR_NOT_FOUND, TM_ERROR_CORRUPT (it
   is no profile), TM_UNSUPPORTED (of another version), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_context_export_profile(tm_context *context, const char *path, tm_error *error);
tm_status tm_context_import_profile(tm_context *context, const char *path, uint32_t *out_count, tm_error *error);

/* ------------------------------------------------------------------------------------------ formats, operations ---- */

/* [any thread] Constant tables, but for tm_support_query, which asks a device. */

typedef struct tm_format_description {
  uint32_t    struct_size;
  uint32_t    format;                   /* TM_FORMAT_* */
  const char *name;
  uint32_t    block_elements;
  uint32_t    block_bytes;
  int32_t     gguf_type;                /* -1: none */
  uint32_t    has_arithmetic;           /* 1: operations can read and write it */
  uint32_t    has_values;               /* 1: operations can read it */
  uint32_t    reserved;
} tm_format_description;
/* TM_OK, TM_END past the last. */
tm_status tm_format_describe(uint32_t index, tm_format_description *out_description);
/* TM_FORMAT_* by name ("bf16", "q4_0"; case does not matter), TM_FORMAT_NONE if unknown. */
uint32_t tm_format_lookup(const char *name);
/* The name of a format; "unknown" for numbers it does not know. */
const char *tm_format_name(uint32_t format);

typedef struct tm_op_description {
  uint32_t    struct_size;
  uint32_t    op;                       /* TM_OP_* */
  uint32_t    version;
  uint32_t    default_numerics;         /* the class accepted when the caller says nothing */
  const char *name;
  const char *summary;
  uint32_t    input_min;
  uint32_t    input_max;
  uint32_t    output_count;
  uint32_t    attribute_bytes;
} tm_op_description;
/* TM_OK, TM_END past the last. */
tm_status tm_op_describe(uint32_t index, tm_op_description *out_description);
/* TM_OP_* by name, TM_OP_NONE if unknown. */
uint32_t tm_op_lookup(const char *name);

typedef struct tm_support {
  uint32_t struct_size;
  uint32_t level;                       /* TM_LEVEL_* */
  uint32_t numerics;                    /* TM_NUMERICS_* */
  uint32_t reasons;                     /* plugin.h TM_REASON_*, when refused; 0: the device is not ready and was not asked */
  double   numerics_bound;
} tm_support;
/* How `device` answers for `op` with `format` operands on a plain, contiguous, medium-sized example.  One that is lost,
   quarantined or excluded is not asked and counts as refusing.
   TM_OK (also when it refuses), TM_END past the last device, TM_UNSUPPORTED (the operation does not take the format at all) */
tm_status tm_support_query(tm_context *context, uint32_t device, uint32_t op, uint32_t format, tm_support *out_support);

/* ------------------------------------------------------------------------------------------------------ tensors ---- */

/* [any thread] Any number of calls may read one tensor's elements at once, but while one writes them no other call uses
   them, through a view of the same memory neither.  The library does not check that. */
typedef struct tm_tensor tm_tensor;

/* Dense, aligned to 64 bytes, filled with zero bytes; counted against the context's memory.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY */
tm_status tm_tensor_create(tm_context *context, uint32_t format, uint32_t rank, const uint64_t *dims, tm_tensor **out_tensor, tm_error *error);
/* Uses memory of the application without a copy; it must hold what layout's dims and strides reach (data = address of the
   element with index 0 everywhere) and outlive the tensor.  Of layout only format, rank, dims and strides_bytes are read,
   and of flags TM_OPERAND_CONSTANT; all strides 0 with more than one element mean contiguous.
   TM_OPERAND_CONSTANT promises that nobody changes the bytes as long as there is the tensor, its views included.  What a
   device makes of constants (a packed copy) is kept for further runs; of all other memory nothing is kept.
   TM_ERROR_ARGUMENT (an unknown format, a shape that it does not take, no data, or less than the layout reaches),
   TM_ERROR_NO_MEMORY */
tm_status tm_tensor_wrap(tm_context *context, const tm_operand *layout, void *data, uint64_t data_bytes, tm_tensor **out_tensor, tm_error *error);
/* A view of the same memory, offset_bytes from the tensor's first element; it must stay inside.  layout as for
   tm_tensor_wrap; views of a constant are constant.   TM_ERROR_ARGUMENT (as there, or it reaches outside), TM_ERROR_NO_MEMORY */
tm_status tm_tensor_view(tm_tensor *tensor, const tm_operand *layout, uint64_t offset_bytes, tm_tensor **out_view, tm_error *error);
void tm_tensor_destroy(tm_tensor *tensor);
/* Format, dims, strides, counts; lives as long as the tensor. */
const tm_operand *tm_tensor_operand(const tm_tensor *tensor);
/* Address of the first element.  Tensors of a checkpoint are constants, mapped ones lie in read-only memory. */
void *tm_tensor_data(tm_tensor *tensor);

/* --------------------------------------------------------------------------------------------------- operations ---- */

/* [any thread] Operations of several threads run side by side, as far as devices can. */

#define TM_ANY_DEVICE 0xffffffffu
#define TM_NUMERICS_DEFAULT 0xffffffffu

/* What happened to one operation. */
typedef struct tm_run_report {
  uint32_t struct_size;
  uint32_t device;                      /* index of the device that computed the result */
  uint32_t level;
  uint32_t numerics;
  uint64_t expected_ns;                 /* corrected cost; 0 if nothing was known */
  uint64_t measured_ns;                 /* lowering, copies and launch until complete, without what happens once */
  uint32_t retries;                     /* devices that failed before */
  uint32_t fell_back;                   /* 1: a device that had promised to run it did not */
  uint32_t watched;                     /* 1: one of the device's first runs of the kind, made with care: slower than later ones */
  uint32_t reserved;
} tm_run_report;

/* What a run does when the device that was chosen fails.  A device that ran short of memory first gets what is only kept for
   speed. */
#define TM_ON_FAILURE_REPORT 0u         /* goes on to the next best, and says so: in the report, the log, a job's notes */
#define TM_ON_FAILURE_STRICT 1u         /* fails with what the device said */

/* Zero-initialise, then set struct_size and worst_numerics. */
typedef struct tm_run_options {
  uint32_t struct_size;
  uint32_t worst_numerics;              /* TM_NUMERICS_*, or TM_NUMERICS_DEFAULT */
  uint32_t device_plus_one;             /* 0: any; else only this device, and no fallback; a lowering's steps may run elsewhere */
  uint32_t run_to_run;                  /* 1: only devices that give equal bits every time, and the same one as long as
                                           its placement is kept: that ends when memory runs short, when it fails, or when a
                                           device or its answers change */
  tm_run_report *report;                /* NULL: not wanted */
  uint32_t on_failure;                  /* TM_ON_FAILURE_* */
  uint32_t repeats;                     /* how often it will be run like this: each run bears its part of what is paid once
                                           (a set-up).  0: not known; then that is paid when earlier runs lost as much without it */
} tm_run_options;

/* The layout of the outputs for these inputs: out_outputs[i].format says which format is wanted (TM_FORMAT_NONE: the
   operation's default); the rest is filled in, dense.  Where the inputs do not say it (fill), the caller gives rank and
   dims too.   TM_ERROR_ARGUMENT says which operand is wrong and how. */
tm_status tm_op_infer(uint32_t op, const void *attributes, uint32_t attribute_bytes, const tm_operand *inputs, uint32_t input_count,
                      tm_operand *out_outputs, uint32_t output_count, tm_error *error);

/* Runs one operation of types.h and returns when the outputs are there.  Operands in the operation's order; outputs
   must not overlap inputs, each other or themselves, and may be partly written when the call fails.  options may be NULL.
   Now and then a repeated operation goes to a device that may be faster than is known, unless run_to_run is set.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_DEVICE (nobody meets the requirements; the text names every candidate and its reason),
   TM_ERROR_NO_MEMORY, TM_ERROR_CHANGED (an input lies in a mapped file that changed), TM_ERROR_INTERNAL (a device hung and
   may still use the operands, which must then stay as they are), and if it is strict also TM_ERROR_DEVICE_LOST and
   TM_ERROR_INTERNAL (a broken promise) */
tm_status tm_run(tm_context *context, uint32_t op, const void *attributes, uint32_t attribute_bytes,
                 tm_tensor *const *inputs, uint32_t input_count, tm_tensor *const *outputs, uint32_t output_count,
                 const tm_run_options *options, tm_error *error);

/* -------------------------------------------------------------------------------------------------- explanation ---- */

/* [any thread] An explanation never changes once it is made. */
typedef struct tm_explanation tm_explanation;

#define TM_VERDICT_CHOSEN      0u
#define TM_VERDICT_SLOWER      1u       /* could run it, costs more */
#define TM_VERDICT_REFUSED     2u       /* says no */
#define TM_VERDICT_INEXACT     3u       /* only in a weaker numerics class than accepted */
#define TM_VERDICT_EXCLUDED    4u       /* by the user's word */
#define TM_VERDICT_QUARANTINED 5u       /* broke a promise about this before, or is lost */

typedef struct tm_candidate {
  uint32_t    struct_size;
  uint32_t    device;
  const char *device_name;
  const char *lowering;                 /* what is done to operands first ("contiguous(a)"); "" if nothing */
  uint32_t    verdict;                  /* TM_VERDICT_* */
  uint32_t    level;
  uint32_t    numerics;
  uint32_t    numerics_flags;
  double      numerics_bound;
  uint32_t    growth;
  uint32_t    accumulator;
  uint64_t    declared_ns;              /* the device's formula */
  double      correction;               /* learned factor; 1 if nothing was measured */
  uint64_t    sample_count;             /* measurements behind the correction */
  uint64_t    lowering_ns;              /* of the steps named in lowering */
  uint64_t    copy_ns;                  /* operands into and results out of the device's memory */
  uint64_t    setup_ns;                 /* what is still to be paid once: opening, set-up, packing of constants; not in total_ns */
  uint64_t    workspace_bytes;
  uint64_t    total_ns;                 /* declared * correction + lowering + copies: what each run takes */
  const char *reason;                   /* a sentence for people */
  uint64_t    earned_ns;                /* of setup_ns: time that earlier runs lost for want of it */
  uint64_t    price_ns;                 /* total_ns + setup_ns - earned_ns, or total_ns + setup_ns / repeats: what is compared */
  double      correction_spread;        /* standard deviation of the correction, as a factor; 1 if nothing was measured */
  uint64_t    setup_share_ns;           /* price_ns - total_ns: what a run bears of setup_ns */
  uint64_t    regret_ns;                /* price_ns beyond that of the chosen one; TM_NEVER_NS if it cannot run */
  uint32_t    repeats_from;             /* it is chosen where tm_run_options.repeats is this or more; 0: whatever that is, it is not */
  uint32_t    repeats_to;               /* and no more than this; UINT32_MAX: or any more */
  uint32_t    flip_numerics;            /* the class nearest to the accepted one with which its device would be chosen, if it is not:
                                           TM_NUMERICS_*; TM_NUMERICS_DEFAULT: there is none */
  uint32_t    reserved;
  uint64_t    flip_price_ns;            /* what it costs then */
} tm_candidate;

typedef struct tm_explanation_summary {
  uint32_t    struct_size;
  uint32_t    op;
  uint32_t    worst_numerics;           /* accepted */
  uint32_t    candidate_count;
  uint64_t    flops;
  uint64_t    read_bytes;
  uint64_t    written_bytes;
  uint32_t    chosen;                   /* candidate index, or TM_ANY_DEVICE if there is none */
  uint32_t    reserved;
  double      margin;                   /* cost of the runner-up / cost of the choice; 0 without runner-up */
  const char *flip;                     /* what other requirement would change the choice; "" if none would */
  uint64_t    flip_price_ns;            /* of what would be chosen then; 0 if none would */
} tm_explanation_summary;

/* Places the operation without running it.  Constant operands (weights) carry TM_OPERAND_CONSTANT in flags; formats,
   dims and strides as for tm_tensor_wrap.  outputs as for tm_op_infer.  That nobody can is an explanation too.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY */
tm_status tm_explain(tm_context *context, uint32_t op, const void *attributes, uint32_t attribute_bytes,
                     const tm_operand *inputs, uint32_t input_count, const tm_operand *outputs, uint32_t output_count,
                     const tm_run_options *options, tm_explanation **out_explanation, tm_error *error);
void tm_explanation_summarize(const tm_explanation *explanation, tm_explanation_summary *out_summary);
/* Candidates, cheapest first, then those that cannot.   TM_OK, TM_END past the last. */
tm_status tm_explanation_candidate(const tm_explanation *explanation, uint32_t index, tm_candidate *out_candidate);
void tm_explanation_destroy(tm_explanation *explanation);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#include "checkpoints.h"        /* reading and writing them */
#include "graphs.h"             /* graphs and plans */
#include "jobs.h"               /* long work over checkpoints */
#include "merge.h"              /* one checkpoint of several */

#endif /* TENSORMORPH_TENSORMORPH_H */
