/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensormorph.h - the application's side of Tensormorph Compute: open checkpoints, run tensor operations on whatever
 * accelerator is there, start long jobs and read their results while they run, and ask why something ran where it did.
 *
 *     tm_context -> tm_checkpoint -> tm_tensor -> tm_run            one operation, placed by capability and cost
 *                                 -> tm_job_start_stats -> rows     long work, in the background
 *                -> tm_job_start_check -> rows                      what is wrong with checkpoints
 *                -> tm_graph                                        operations that belong together, checked as they are added
 *                     -> tm_plan -> tm_plan_run                     placed once, run any number of times
 *                -> tm_explain                                      every candidate, its cost, and the reason
 *
 * Everything hangs off a context; there is no global state but the guard for mapped files (TM_CONTEXT_MAP_FILES).  Create
 * or open gives the caller an object that it must destroy or close; children (checkpoints, tensors, jobs, explanations, graphs)
 * go before their context, views before their tensor, file tensors and jobs before their checkpoint.  destroy and close
 * accept NULL.  Pointers in filled structs belong to the object asked and live as long as it does.  Structs start with
 * struct_size, set by the caller (= sizeof); only that much is read or written, and what the library does not know of a
 * longer one must be zero.  A status below 0 is an error; its text
 * is in the tm_error passed to that call (may be NULL).  Outputs are written only on success, unless said otherwise.
 *
 * Longer than the limit: all that an application reads stands in one header.
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
  uint32_t    reserved;
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
  uint64_t    violation_count;          /* broken promises so far */
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
/* Writes what was learned to the state folder now.   TM_ERROR_IO, TM_BUSY (another process has it for too long),
   TM_UNSUPPORTED (it was written by a later version), TM_ERROR_NO_MEMORY; without a state folder nothing happens */
tm_status tm_context_save_profile(tm_context *context, tm_error *error);
/* Forgets what was learned of a device, or of all of a backend's, here and in the state folder; NULL: everything.
   out_count: entries; may be NULL.   TM_ERROR_NOT_FOUND (no such name), TM_ERROR_IO, ... */
tm_status tm_context_reset_profile(tm_context *context, const char *name, uint32_t *out_count, tm_error *error);
/* Writes all that is in the state folder, of devices that are not here too, to a file; reads such a file and adds it to what
   is known.  TM_ERROR_ARGUMENT (no path), TM_ERROR_NOT_FOUND, TM_ERROR_CORRUPT (it is no profile), TM_UNSUPPORTED (of another
   version), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
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
  uint32_t    has_arithmetic;           /* 1: operations can compute with it */
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
  double      correction_spread;        /* standard deviation of the correction, as a factor: how sure it is */
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

/* -------------------------------------------------------------------------------------------------- checkpoints ---- */

/* [any thread] What is told of a checkpoint is fixed when it is opened; its bytes are looked at anew by every read, so each
   one may find that the file has changed. */
typedef struct tm_checkpoint tm_checkpoint;

#define TM_CHECKPOINT_ALLOW_INCOMPLETE 0x1u     /* open a truncated file; its incomplete tensors are flagged */
#define TM_CHECKPOINT_ALONE            0x2u     /* open a part of a model in several files as if it were a file of its own */

/* A safetensors, GGUF, ONNX or npy file, the index of a sharded set, or a folder with one of them.  Any part of a model in several
   files stands for the whole: of a split GGUF model always, of a safetensors set if an index beside the file names it and the
   set can be opened; else the file is opened alone, and a note says so.
   TM_ERROR_ARGUMENT (no path, unknown flags), TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_CORRUPT (what, where, expected,
   found), TM_ERROR_LIMIT (header too large), TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_open(tm_context *context, const char *path, uint32_t flags, tm_checkpoint **out_checkpoint, tm_error *error);
void tm_checkpoint_close(tm_checkpoint *checkpoint);

typedef struct tm_checkpoint_description {
  uint32_t    struct_size;
  uint32_t    file_count;
  const char *path;
  const char *format;                   /* "safetensors", "gguf v3", "gguf v3, big-endian", "onnx", "npy v1" */
  uint64_t    tensor_count;
  uint64_t    metadata_count;
  uint64_t    tensor_bytes;
  uint64_t    file_bytes;
  uint64_t    incomplete_count;
} tm_checkpoint_description;
void tm_checkpoint_describe(const tm_checkpoint *checkpoint, tm_checkpoint_description *out_description);

typedef struct tm_file_description {
  uint32_t    struct_size;
  uint32_t    mapped;
  const char *path;
  uint64_t    bytes;
} tm_file_description;
/* TM_OK, TM_END past the last. */
tm_status tm_checkpoint_file(const tm_checkpoint *checkpoint, uint32_t file, tm_file_description *out_description);

#define TM_TENSOR_INCOMPLETE   0x1u     /* the file ends before the tensor does */
#define TM_TENSOR_UNKNOWN_TYPE 0x2u     /* this version does not know the type; bytes may be 0 */

typedef struct tm_tensor_description {
  uint32_t    struct_size;
  uint32_t    flags;                    /* TM_TENSOR_* */
  const char *name;                     /* NUL-terminated; may hold any bytes: escape before printing */
  uint64_t    name_length;
  uint32_t    format;                   /* TM_FORMAT_NONE if unknown */
  uint32_t    rank;                     /* may be more than TM_MAX_RANK: then it can be listed only */
  const char *type_name;                /* as the file has it */
  const uint64_t *dims;                 /* outermost first */
  uint64_t    element_count;
  uint64_t    bytes;
  uint64_t    offset;                   /* in its file */
  uint32_t    file;
  uint32_t    reserved;
} tm_tensor_description;
/* In file order.   TM_OK, TM_END past the last. */
tm_status tm_checkpoint_tensor(const tm_checkpoint *checkpoint, uint64_t index, tm_tensor_description *out_description);
/* The index of the tensor of that name.   TM_OK, TM_ERROR_NOT_FOUND */
tm_status tm_checkpoint_find(const tm_checkpoint *checkpoint, const char *name, uint64_t *out_index);

typedef struct tm_metadata_description {
  uint32_t    struct_size;
  uint32_t    reserved;
  const char *key;
  uint64_t    key_length;
  const char *type;                     /* "string", "u32", "array of string[30522]" */
  const char *value;                    /* a string whole; anything else as text, cut and ending in "..." if it is long */
  uint64_t    value_length;
} tm_metadata_description;
/* The first call for an entry prints its value and keeps the text, which lives as long as the checkpoint.
   TM_OK, TM_END past the last, TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_metadata(tm_checkpoint *checkpoint, uint64_t index, tm_metadata_description *out_description);

/* What is odd about the files but no error (a key said twice, a total that does not add up): one sentence each.
   TM_OK, TM_END past the last. */
tm_status tm_checkpoint_note(const tm_checkpoint *checkpoint, uint64_t index, const char **out_note);

/* Reads bytes [offset, offset + bytes) of a tensor.   TM_ERROR_ARGUMENT (no such tensor, or outside of it),
   TM_ERROR_CORRUPT (the file ends before them), TM_ERROR_IO, TM_ERROR_CHANGED */
tm_status tm_checkpoint_read(tm_checkpoint *checkpoint, uint64_t index, uint64_t offset, void *out_data, uint64_t bytes, tm_error *error);
/* The tensor as an operand: without a copy from a mapped file, else read into memory of the context.
   TM_ERROR_ARGUMENT (no such tensor; a type that is unknown to this version, more than TM_MAX_RANK axes), TM_ERROR_CORRUPT
   (the file ends before the tensor does), TM_ERROR_IO, TM_ERROR_CHANGED, TM_ERROR_NO_MEMORY */
tm_status tm_checkpoint_load(tm_checkpoint *checkpoint, uint64_t index, tm_tensor **out_tensor, tm_error *error);
/* TM_OK, TM_ERROR_CHANGED (a file is not what it was when it was opened), TM_ERROR_IO */
tm_status tm_checkpoint_verify(tm_checkpoint *checkpoint, tm_error *error);

/* ----------------------------------------------------------------------------------------------------- writers ---- */

/*
 * Writes a checkpoint.  First it is planned: all but the bytes of the tensors is given, and what will be written, replaced and lost
 * can be asked for; nothing is touched.  tm_writer_begin makes the files beside their names (NAME.<12 digits>.part) and takes their
 * room on the disk; tm_writer_write fills them; tm_writer_finish brings them to the disk and puts them in their place.  A writer
 * that is destroyed before leaves everything as it was.
 *
 * One file takes the place of another at once: whoever opens the name finds the old one whole or the new one whole.  Of a set
 * nothing stands under its name before all is complete.  Then its index, as NAME.<12 digits>.whole, decides that the new set
 * counts; the shards and the index of the old one go; the new shards come; the index comes last.  So no two sets ever stand there
 * mixed, and a process that is killed in that moment leaves a set without an index, which tm_checkpoint_open says, and which the
 * next tm_writer_begin for the same path, or tm_writer_recover, completes.  Parts of a killed writer are removed by the same two.
 *
 * [any thread] for tm_writer_write and tm_writer_cancel; the others are called when no other call on that writer runs.
 */
typedef struct tm_writer tm_writer;

#define TM_WRITER_SAFETENSORS 1u
#define TM_WRITER_GGUF        2u        /* version 3 */

typedef struct tm_writer_tensor {
  const char     *name;                 /* any bytes in GGUF, UTF-8 in safetensors */
  uint64_t        name_length;
  const uint64_t *dims;                 /* outermost first; dense */
  uint32_t        rank;
  uint32_t        format;               /* TM_FORMAT_NONE: what type_name says, with `bytes` bytes */
  const char     *type_name;            /* of TM_FORMAT_NONE: a dtype of safetensors, or, written to safetensors, one that the
                                           library does not know but a safetensors file among metadata_from and inputs has */
  uint64_t        bytes;                /* of TM_FORMAT_NONE */
} tm_writer_tensor;

/* Types of metadata values; the numbers are those of GGUF. */
#define TM_VALUE_U8      0u
#define TM_VALUE_I8      1u
#define TM_VALUE_U16     2u
#define TM_VALUE_I16     3u
#define TM_VALUE_U32     4u
#define TM_VALUE_I32     5u
#define TM_VALUE_F32     6u
#define TM_VALUE_BOOL    7u             /* one byte */
#define TM_VALUE_STRING  8u
#define TM_VALUE_ARRAY   9u
#define TM_VALUE_U64    10u
#define TM_VALUE_I64    11u
#define TM_VALUE_F64    12u

typedef struct tm_writer_metadata {
  const char *key;
  uint64_t    key_length;
  const void *data;                     /* little-endian; of a STRING its text; of an ARRAY its elements one after another, a
                                           string among them as u64 length and text */
  uint64_t    bytes;
  uint64_t    count;                    /* elements of an ARRAY, else 0 */
  uint32_t    type;                     /* TM_VALUE_* */
  uint32_t    element_type;             /* of an ARRAY, else 0 */
} tm_writer_metadata;

/* Zero-initialise, then set struct_size and format.  Needed during tm_writer_create only. */
typedef struct tm_writer_options {
  uint32_t struct_size;
  uint32_t format;                      /* TM_WRITER_* */
  uint64_t shard_bytes;                 /* safetensors: no file has more, unless one tensor alone needs it; what fits in one file
                                           stays one.  0: one file */
  const tm_writer_tensor *tensors;      /* in the order wanted */
  uint64_t tensor_count;
  const tm_checkpoint *metadata_from;   /* all its metadata are kept, in GGUF byte for byte; NULL: none */
  const tm_writer_metadata *metadata;   /* added behind; of two with one key the later counts */
  uint64_t metadata_count;
  const tm_checkpoint *const *inputs;   /* none of their files may be written over; metadata_from is one of them anyway */
  uint32_t input_count;
  uint32_t reserved;
} tm_writer_options;

/* `path` is the file, X.safetensors or X.gguf.  A set is called X-00001-of-00002.safetensors ..., with X.safetensors.index.json.
   A link is followed for a single file, and what it leads to is replaced.
   TM_ERROR_ARGUMENT (what the format cannot hold, a name twice, an output that is an input by whatever name, a folder),
   TM_ERROR_NOT_FOUND (no such folder), TM_ERROR_IO (a folder that may not be written to, a pipe, a name too long),
   TM_ERROR_NO_MEMORY */
tm_status tm_writer_create(tm_context *context, const char *path, const tm_writer_options *options, tm_writer **out_writer,
                           tm_error *error);

typedef struct tm_writer_description {
  uint32_t    struct_size;
  uint32_t    format;                   /* TM_WRITER_* */
  uint64_t    file_count;
  uint64_t    tensor_count;
  uint64_t    tensor_bytes;
  uint64_t    file_bytes;               /* of all files; what they replace goes last, so it does not make room for them */
  uint64_t    free_bytes;               /* of the file system; UINT64_MAX: nobody can tell */
  uint64_t    removal_count;            /* of tm_writer_removal */
} tm_writer_description;
void tm_writer_describe(const tm_writer *writer, tm_writer_description *out_description);

typedef struct tm_writer_file_description {
  uint32_t    struct_size;
  uint32_t    replaces;                 /* 1: something of that name is there */
  const char *path;
  uint64_t    bytes;
} tm_writer_file_description;
/* TM_OK, TM_END past the last; of a set the index is the last. */
tm_status tm_writer_file(const tm_writer *writer, uint64_t file, tm_writer_file_description *out_description);
/* Files of an earlier checkpoint of this name that go when the new ones are there: shards of another number, the single file of
   what is a set now, or the index of what is one file now.   TM_OK, TM_END past the last */
tm_status tm_writer_removal(const tm_writer *writer, uint64_t index, const char **out_path);
/* What is lost or odd: one sentence each.   TM_OK, TM_END past the last */
tm_status tm_writer_note(const tm_writer *writer, uint64_t index, const char **out_note);
/* The size of a tensor's bytes as they are to be written.   TM_OK, TM_END past the last */
tm_status tm_writer_tensor_bytes(const tm_writer *writer, uint64_t tensor, uint64_t *out_bytes);

/* TM_BUSY (somebody else writes the same, or left parts on a file system without locks; may be tried again), TM_ERROR_IO (no
   room, a limit of the process, ...), TM_ERROR_ARGUMENT (begun before, an input in the place of an output), TM_ERROR_NO_MEMORY */
tm_status tm_writer_begin(tm_writer *writer, tm_error *error);
/* The bytes [offset, offset + bytes) of a tensor, as its format has them; each byte once, pieces in any order.  When the system
   refuses a write, all that follow fail for the same reason.
   TM_ERROR_ARGUMENT (not begun, no such tensor, outside of it, written before), TM_ERROR_IO, TM_ERROR_CANCELLED,
   TM_ERROR_NO_MEMORY */
tm_status tm_writer_write(tm_writer *writer, uint64_t tensor, uint64_t offset, const void *data, uint64_t bytes, tm_error *error);
/* When all writes came back.  Takes as long as the disk needs.   TM_ERROR_ARGUMENT (bytes of a tensor are missing: they may still
   be written), TM_ERROR_IO (the text says where everything is then), TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY */
tm_status tm_writer_finish(tm_writer *writer, tm_error *error);
/* Writes and finish end soon with TM_ERROR_CANCELLED, up to the moment from which the new files count.  Safe to call from a signal
   handler. */
void tm_writer_cancel(tm_writer *writer);
void tm_writer_destroy(tm_writer *writer);

/* Cleans up after writers of `path` (or of the set whose index that is) that were killed.  Counts may be NULL: parts that were
   removed, sets that are now in their place.   TM_BUSY (a writer of it lives), TM_ERROR_ARGUMENT (no path, a folder),
   TM_ERROR_NOT_FOUND (no such folder), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_writer_recover(tm_context *context, const char *path, uint64_t *out_removed_count, uint64_t *out_completed_count,
                            tm_error *error);

/* -------------------------------------------------------------------------------------------------------- jobs ---- */

/* [any thread] tm_job_destroy is the exception.  Rows, notes and figures may be read while the job runs. */
typedef struct tm_job tm_job;

#define TM_COLUMN_TEXT    1u
#define TM_COLUMN_COUNT   2u            /* unsigned */
#define TM_COLUMN_NUMBER  3u            /* f64 */
#define TM_COLUMN_SHAPE   4u            /* list of unsigned */
#define TM_COLUMN_BYTES   5u            /* unsigned, a size */

typedef struct tm_column {
  const char *name;                     /* as in JSON */
  uint32_t    type;                     /* TM_COLUMN_* */
  uint32_t    reserved;
  const char *help;                     /* one sentence; units included */
} tm_column;

/* One cell.  `defined` 0: there is no such number (the mean of nothing). */
typedef struct tm_cell {
  uint32_t    type;                     /* TM_COLUMN_*: which member holds */
  uint32_t    defined;
  uint64_t    count;                    /* COUNT, BYTES; of TEXT its length, of SHAPE its rank */
  double      number;
  const char *text;
  const uint64_t *shape;
} tm_cell;

typedef struct tm_progress {
  uint32_t struct_size;
  uint32_t finished;                    /* 1: no more will happen; tm_job_wait tells how it ended */
  uint64_t bytes_done;                  /* never more than the total; less at the end of a check that could not read all of it */
  uint64_t bytes_total;                 /* 0 until the job has found out, like items_total; fixed from then on */
  uint64_t items_done;                  /* tensors; of a check those that were examined whole */
  uint64_t items_total;
  uint64_t elapsed_ns;
} tm_progress;

/* How much one device did for a job. */
typedef struct tm_device_usage {
  uint32_t    struct_size;
  uint32_t    device;
  const char *device_name;
  uint64_t    operation_count;
  uint64_t    bytes;
  uint64_t    busy_ns;                  /* sum over operations; may exceed the job's time when they overlap */
} tm_device_usage;

/* Called once on the job's own thread when it has ended; must not call tm_job_wait or tm_job_destroy on it. */
typedef void (*tm_job_complete_fn)(void *complete_context, tm_job *job);

typedef struct tm_stats_options {
  uint32_t struct_size;
  uint32_t worst_numerics;              /* TM_NUMERICS_*, or TM_NUMERICS_DEFAULT */
  const char *const *include;           /* glob patterns over names; none: all */
  const char *const *exclude;
  uint32_t include_count;
  uint32_t exclude_count;
  tm_job_complete_fn complete;          /* NULL: none */
  void    *complete_context;
} tm_stats_options;

/*
 * Statistics of every tensor, in one pass, in file order.  Columns: file, name, dtype, shape, count, nan, pos_inf,
 * neg_inf, zero, subnormal, min, max, abs_max, mean, std, l2 (the last six of the finite values; std is the population's).
 * A tensor whose type has no arithmetic gets a row with undefined figures and a note.  options may be NULL; options and
 * patterns are copied, the checkpoints outlive the job.
 * Returns at once, whatever the number of tensors: the job itself finds out which ones are meant.  So a pattern that matches
 * nothing makes the job end, before any row and with totals still 0, and tm_job_wait returns TM_ERROR_NOT_FOUND with a
 * suggestion in its text; so do patterns that exclude all that there is.
 * TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY
 */
tm_status tm_job_start_stats(tm_context *context, tm_checkpoint *const *checkpoints, uint32_t checkpoint_count,
                             const tm_stats_options *options, tm_job **out_job, tm_error *error);

typedef struct tm_check_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *const *include;           /* glob patterns over names; none: all.  They choose whose values are examined */
  const char *const *exclude;
  uint32_t include_count;
  uint32_t exclude_count;
  tm_job_complete_fn complete;          /* NULL: none */
  void    *complete_context;
} tm_check_options;

/*
 * What is wrong with the checkpoints at these paths (files, indexes of sharded sets, folders): one row each thing.  Columns: file,
 * level ("finding": something is wrong; "note": worth knowing; "trouble": it could not be examined), kind, tensor, dtype, shape,
 * count, total, first, slices, other, message.  Kinds:
 *   structure         what the reader refuses, and files that are something else
 *   missing_shard, stray_shard, missing_tensor, misplaced_tensor, unindexed_tensor, duplicate_tensor    index against shards
 *   truncated_file, truncated       the file, and each tensor that it ends before
 *   nan, inf          count elements of total; first: an index; slices: where on the outermost axis, from three axes on
 *   block_scale       likewise count blocks whose scale is not finite; the last number of first counts blocks in a row
 *   unexamined        values of a type that this version does not know
 *   tied, zero, odd   notes: equal bytes in another tensor (other), nothing but zeros, what a reader finds odd
 *   unreadable, changed             trouble: not there, not readable, or changed meanwhile
 * Rows about files come first, then those about values in file order, then ties.  Trouble with one file costs the others nothing,
 * and the job ends with TM_OK.  options may be NULL; all is copied.  Returns at once: files are opened by the job itself.
 * Patterns that match nothing, or leave nothing, end it as they end statistics, unless there are findings or trouble about files:
 * then those are its rows, and a note tells of the pattern.
 * TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY
 */
tm_status tm_job_start_check(tm_context *context, const char *const *paths, uint32_t path_count, const tm_check_options *options,
                             tm_job **out_job, tm_error *error);

/* TM_PENDING while it runs (timeout_ns 0 polls, UINT64_MAX waits for ever), then how it ended, however often it is asked:
   TM_OK, TM_ERROR_CANCELLED, TM_ERROR_NOT_FOUND (a pattern that matches nothing), TM_ERROR_CHANGED, TM_ERROR_IO,
   TM_ERROR_NO_DEVICE, TM_ERROR_NO_MEMORY, ...; error gets the text. */
tm_status tm_job_wait(tm_job *job, uint64_t timeout_ns, tm_error *error);
/* Asks it to end soon (within 100 ms); returns at once.  Safe to call from a signal handler. */
void tm_job_cancel(tm_job *job);
void tm_job_progress(const tm_job *job, tm_progress *out_progress);
/* What its rows consist of; fixed from the start. */
const tm_column *tm_job_columns(const tm_job *job, uint32_t *out_count);
/* Rows finished so far; rows are never changed or removed. */
uint64_t tm_job_row_count(const tm_job *job);
/* Fills one cell a column.  Texts live as long as the job.   TM_OK, TM_END (not there yet) */
tm_status tm_job_row(const tm_job *job, uint64_t row, tm_cell *out_cells);
/* TM_OK, TM_END */
tm_status tm_job_device_usage(const tm_job *job, uint32_t index, tm_device_usage *out_usage);
/* What fell back and why, what could not be computed: one sentence each.  TM_OK, TM_END */
tm_status tm_job_note(const tm_job *job, uint32_t index, const char **out_note);
/* Cancels it if it runs, waits for its end, frees it. */
void tm_job_destroy(tm_job *job);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#include "graphs.h"             /* graphs and plans */

#endif /* TENSORMORPH_TENSORMORPH_H */
