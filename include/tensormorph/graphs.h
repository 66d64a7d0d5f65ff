/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphs.h - the part of tensormorph.h that is about many operations at once: graphs, the plans that run them, and why a plan is
 * as it is.  tensormorph.h includes it, and what stands at its head (ownership, structs, threads) holds here, too.
 */
#ifndef TENSORMORPH_GRAPHS_H
#define TENSORMORPH_GRAPHS_H

#include "tensormorph.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ------------------------------------------------------------------------------------------------------- graphs ---- */

/*
 * Operations that belong together: built once, checked while it is built, run many times through a plan.  Values and nodes
 * are numbers, given in order from 0, the same for the same calls.  A value is made once and never changes; a state has
 * its content from before the run for all who read it.
 * One thread at a time adds to a graph; [any thread] may do everything else with it at once as long as nobody adds.  The first
 * plan seals it: to add afterwards is TM_ERROR_ARGUMENT.  A graph goes before its context and after its plans.
 */
typedef struct tm_graph tm_graph;

#define TM_NO_VALUE 0xffffffffu
#define TM_NO_NODE  0xffffffffu

/* An empty graph.   TM_ERROR_NO_MEMORY */
tm_status tm_graph_create(tm_context *context, tm_graph **out_graph, tm_error *error);
void tm_graph_destroy(tm_graph *graph);

/*
 * Inputs, constants and states have names, unique among them, clean UTF-8 of 1 to 255 bytes; layouts as for tm_tensor_wrap.
 * All below:  TM_ERROR_ARGUMENT (what, where, expected, found; nothing was added), TM_ERROR_NO_MEMORY
 */

/* What each run is given. */
tm_status tm_graph_input(tm_graph *graph, const char *name, const tm_operand *layout, uint32_t *out_value, tm_error *error);
/* The same bytes in every run (weights).  The tensor's memory stays as it is, and the tensor lives, as long as the graph. */
tm_status tm_graph_constant(tm_graph *graph, const char *name, tm_tensor *tensor, uint32_t *out_value, tm_error *error);
/* What lives from run to run in a plan, zero at first: format, rank and dims of layout, dense. */
tm_status tm_graph_state(tm_graph *graph, const char *name, const tm_operand *layout, uint32_t *out_value, tm_error *error);
/* After a run the state is `value`, of the state's format and dims.  Once a state; one that is not carried stays as it is. */
tm_status tm_graph_carry(tm_graph *graph, uint32_t state, uint32_t value, tm_error *error);
/* A view of the value's memory (reshape, slice, transpose), offset_bytes from its first element; it must stay inside.
   layout as for tm_tensor_view.  It begins at that element or behind it, also where strides are negative: a view of a reversed
   view that is to begin before that one's first element is a view of the value itself. */
tm_status tm_graph_view(tm_graph *graph, uint32_t value, const tm_operand *layout, uint64_t offset_bytes, uint32_t *out_value,
                        tm_error *error);
/* An operation; it is placed and run whether anybody needs what it makes or not.  name: NULL, or unique among the nodes.
   outputs: NULL for the usual formats, else output_count wanted ones as for tm_op_infer; out_values: one number an output. */
tm_status tm_graph_node(tm_graph *graph, const char *name, uint32_t op, const void *attributes, uint32_t attribute_bytes,
                        const uint32_t *inputs, uint32_t input_count, const tm_operand *outputs, uint32_t output_count,
                        uint32_t *out_values, tm_error *error);
/* The value is wanted after each run.  Names are unique among the outputs; a value may be several of them. */
tm_status tm_graph_output(tm_graph *graph, const char *name, uint32_t value, tm_error *error);

typedef struct tm_graph_description {
  uint32_t struct_size;
  uint32_t sealed;                      /* 1: nothing can be added any more */
  uint32_t value_count;
  uint32_t node_count;
  uint32_t input_count;
  uint32_t constant_count;
  uint32_t state_count;
  uint32_t output_count;
  uint32_t unbound_count;               /* constants of a loaded graph that have no bytes yet */
  uint32_t reserved;
} tm_graph_description;
void tm_graph_describe(const tm_graph *graph, tm_graph_description *out_description);

#define TM_VALUE_INPUT    1u
#define TM_VALUE_CONSTANT 2u
#define TM_VALUE_STATE    3u
#define TM_VALUE_RESULT   4u            /* of a node; dense */
#define TM_VALUE_VIEW     5u

typedef struct tm_value_description {
  uint32_t    struct_size;
  uint32_t    kind;                     /* TM_VALUE_* */
  const char *name;                     /* "" for results and views */
  tm_operand  layout;
  uint32_t    index;                    /* among the values of its kind; of a result, which output of its node */
  uint32_t    node;                     /* that makes it; TM_NO_NODE unless it is a result */
  uint32_t    base;                     /* of a view the value in whose memory it lies, no view itself; else its own number */
  uint32_t    carry;                    /* of a state what it is after a run, TM_NO_VALUE: it stays; else TM_NO_VALUE */
  uint64_t    offset_bytes;             /* of a view, from the first element of base */
  uint32_t    bound;                    /* of a constant: 1 when its bytes are there */
  uint32_t    reserved;
} tm_value_description;
/* TM_OK, TM_END past the last. */
tm_status tm_graph_value_describe(const tm_graph *graph, uint32_t value, tm_value_description *out_description);
/* The input, constant or state of that name.   TM_OK, TM_ERROR_NOT_FOUND */
tm_status tm_graph_find(const tm_graph *graph, const char *name, uint32_t *out_value);

typedef struct tm_node_description {
  uint32_t    struct_size;
  uint32_t    op;                       /* TM_OP_* */
  const char *name;                     /* "" if it has none */
  const char *op_name;
  const void *attributes;               /* as types.h has them; NULL if there are none */
  const uint32_t *inputs;               /* values */
  const uint32_t *outputs;              /* values */
  uint32_t    attribute_bytes;
  uint32_t    input_count;
  uint32_t    output_count;
  uint32_t    reserved;
} tm_node_description;
/* TM_OK, TM_END past the last. */
tm_status tm_graph_node_describe(const tm_graph *graph, uint32_t node, tm_node_description *out_description);

typedef struct tm_graph_output_description {
  uint32_t    struct_size;
  uint32_t    value;
  const char *name;
} tm_graph_output_description;
/* In the order in which they were added.   TM_OK, TM_END past the last. */
tm_status tm_graph_output_describe(const tm_graph *graph, uint32_t output, tm_graph_output_description *out_description);

#define TM_GRAPH_TEXT 0u                /* a line an item, for people */
#define TM_GRAPH_DOT  1u                /* for Graphviz */
#define TM_GRAPH_JSON 2u                /* what tm_graph_save writes, without digests */

/* Writes up to capacity bytes of text, the NUL included, and tells the length of the whole without it; out_text may be NULL
   with capacity 0.   TM_ERROR_ARGUMENT (an unknown form) */
tm_status tm_graph_print(const tm_graph *graph, uint32_t form, char *out_text, uint64_t capacity, uint64_t *out_length,
                         tm_error *error);

#define TM_GRAPH_SAVE_DIGESTS 0x1u      /* read all constants and keep the SHA-256 of each, which tm_graph_bind then checks */

/* Writes the graph to a file, constants by name and layout, not by bytes; a file of that name is replaced at once or stays.
   TM_ERROR_ARGUMENT (no path, unknown flags), TM_ERROR_IO, TM_ERROR_CHANGED, TM_ERROR_NO_MEMORY */
tm_status tm_graph_save(const tm_graph *graph, const char *path, uint32_t flags, tm_error *error);
/* A graph with the same numbers, and constants without bytes.
   TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_CORRUPT (what, where, expected, found: damage, cycles, shapes that do not fit, an
   operation or version that is not known here ...), TM_ERROR_LIMIT (over 1 GiB), TM_ERROR_NO_MEMORY */
tm_status tm_graph_load(tm_context *context, const char *path, tm_graph **out_graph, tm_error *error);
/* Gives a constant of a loaded graph its bytes, once; not while others use the graph.  As for tm_graph_constant; the tensor's
   format and dims are those of the constant, and its bytes have the digest that the file kept.
   TM_ERROR_ARGUMENT, TM_ERROR_CHANGED */
tm_status tm_graph_bind(tm_graph *graph, uint32_t value, tm_tensor *tensor, tm_error *error);

/* -------------------------------------------------------------------------------------------------------- plans ---- */

/*
 * A graph placed on what is there: who runs each node, what is copied when, where everything lies.  Made once, run many times.
 * The same graph, devices, learned costs, options and version give the same plan, bit for bit (tm_plan_digest), as long as what is paid
 * once is: kernels that another plan of the context has prepared cost this one nothing more.
 *
 * The first runs are made with care: devices prove themselves, and kernels that take long to prepare are prepared beside them,
 * while the next best does their work.  From then on a run only replays: values stay where they are used, and nobody is asked
 * anything.  When something fails, what is left is run elsewhere, from what survived; before the next run the graph is
 * placed anew.  As long as a device that can is left, the result is what the reference would compute, within the numerics that
 * were accepted.
 *
 * One thread at a time uses a plan; [any thread] several plans run at once, also of one graph, each with states of its own.  A plan
 * goes before its graph.
 */
typedef struct tm_plan tm_plan;

/* Zero-initialise, then set struct_size and worst_numerics. */
typedef struct tm_plan_options {
  uint32_t struct_size;
  uint32_t worst_numerics;              /* TM_NUMERICS_*, or TM_NUMERICS_DEFAULT */
  uint32_t run_to_run;                  /* 1: only devices that give equal bits every time */
  uint32_t on_failure;                  /* TM_ON_FAILURE_* */
  uint32_t wait_for_prepare;            /* 1: prepare all kernels before tm_plan_create returns */
  uint32_t one_resource;                /* 1: all nodes on one device and those of its silicon, and on the reference what it cannot */
  uint64_t repeats;                     /* runs that this plan is made for, over which what is paid once is spread; 0: 100 */
  uint64_t max_memory_bytes;            /* that the plan takes in any one memory, copies of constants included and the application's
                                           own memory not (see tm_plan_memory_describe); 0: no limit */
  const char *const *devices;           /* use only these, as in tm_context_options; the reference stays */
  const char *const *excluded_devices;  /* never these, whatever fails */
  uint32_t device_count;
  uint32_t excluded_device_count;
  /* What counts how much, each up to 1000; all 0: latency only.  Of the cheapest placement and those on one resource each, the one
     with the least sum of the three is taken. */
  uint32_t latency_permille;            /* of the time until the end, in ns */
  uint32_t throughput_permille;         /* of the time that the busiest resource works, in ns: what bounds runs side by side */
  uint32_t memory_permille;             /* of the bytes at the peak in all memories, in KiB */
  uint32_t reserved;
} tm_plan_options;

/* Seals the graph.  options may be NULL.
   TM_ERROR_ARGUMENT (unknown devices, a constant without bytes), TM_ERROR_NO_DEVICE (names the node and what every candidate
   said), TM_ERROR_LIMIT (max_memory_bytes), TM_ERROR_NO_MEMORY */
tm_status tm_plan_create(tm_graph *graph, const tm_plan_options *options, tm_plan **out_plan, tm_error *error);
void tm_plan_destroy(tm_plan *plan);

/* What happened in one run.  The last three count for the whole context. */
typedef struct tm_plan_report {
  uint32_t struct_size;
  uint32_t replayed;                    /* 1: replayed; 0: made with care, node by node */
  uint32_t retries;                     /* failures that were made good */
  uint32_t fell_back;                   /* 1: a device that had promised to run something did not */
  uint32_t rerun_count;                 /* nodes that ran a second time, as what they had made was gone */
  uint32_t plan_count;                  /* times that the graph was placed anew */
  uint64_t predicted_ns;
  uint64_t measured_ns;
  uint64_t query_count;                 /* operations that devices were asked about meanwhile */
  uint64_t prepare_count;               /* kernels that were prepared meanwhile */
  char     note[256];                   /* what failed; "" if nothing did */
} tm_plan_report;

/* Runs the graph and returns when outputs and states are there.  Inputs and outputs in the order in which the graph has them;
   inputs have the layout that it says or one of the same format and dims; outputs are of the value's format and dims,
   and overlap neither inputs nor each other.  Dense and aligned to 64 bytes they are used in place, but for those of at most
   4 MiB that an asynchronous device copies to or from memory of its own: for these the plan has memory beside them.
   When it fails outputs may be partly written; states are as they were, but for those that are updated in place: running it
   again with the same inputs updates them to what they would be.  report may be NULL.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_DEVICE (names everything that was tried), TM_ERROR_DEVICE_LOST (names the state that is lost
   with a device), TM_ERROR_CHANGED (an input or constant lies in a mapped file that changed), TM_ERROR_NO_MEMORY,
   TM_ERROR_INTERNAL (a device hung and may still use inputs or outputs, which must then stay as they are: it is asynchronous
   and works in the host's memory, or was copying one that is used in place; if it is strict also a broken promise) */
tm_status tm_plan_run(tm_plan *plan, tm_tensor *const *inputs, uint32_t input_count, tm_tensor *const *outputs, uint32_t output_count,
                      tm_plan_report *report, tm_error *error);

/* The content of a state between runs; tensors of its format and dims.  A lost state is found again by writing or resetting it.
   TM_ERROR_ARGUMENT (no state of the graph, or another shape), TM_ERROR_DEVICE_LOST (it is gone), and what a device says */
tm_status tm_plan_state_read(tm_plan *plan, uint32_t state, tm_tensor *tensor, tm_error *error);
tm_status tm_plan_state_write(tm_plan *plan, uint32_t state, tm_tensor *tensor, tm_error *error);
/* To zero; TM_NO_VALUE: all of them. */
tm_status tm_plan_state_reset(tm_plan *plan, uint32_t state, tm_error *error);

typedef struct tm_plan_description {
  uint32_t struct_size;
  uint32_t step_count;                  /* nodes, in the order in which they run: not that of the graph where devices work at
                                           the same time, and another is over sooner */
  uint32_t transfer_count;              /* copies between memories in each run */
  uint32_t memory_count;
  uint32_t replays;                     /* 1: runs are replayed by now */
  uint32_t preparing;                   /* 1: kernels are being prepared */
  uint32_t exact;                       /* 1: proven to be the cheapest, as far as times add up */
  uint32_t overlaps;                    /* 1: work of several devices at the same time is counted once in the next two */
  uint64_t predicted_ns;                /* one run, copies included */
  uint64_t bound_ns;                    /* no placement is predicted to take less; 0: not known */
  uint64_t additive_ns;                 /* one run with nothing at the same time */
  uint64_t run_count;
  uint64_t replay_count;
  uint64_t plan_count;                  /* times that the graph was placed */
  uint64_t failure_count;               /* runs in which something failed and was made good */
} tm_plan_description;
void tm_plan_describe(const tm_plan *plan, tm_plan_description *out_description);

typedef struct tm_plan_step_description {
  uint32_t    struct_size;
  uint32_t    node;
  uint32_t    device;                   /* index for tm_device_describe */
  uint32_t    alternate;                /* who takes it over; TM_ANY_DEVICE: nobody can */
  const char *device_name;
  const char *alternate_name;           /* "" if there is none */
  const char *lowering;                 /* what is done to operands first; "" if nothing */
  uint64_t    predicted_ns;             /* copies not included */
  uint64_t    alternate_ns;
  uint32_t    in_place;                 /* 1: it runs where its operands are; 0: operands are copied or lowered for it at each run */
  uint32_t    prepared;
} tm_plan_step_description;
/* TM_OK, TM_END past the last. */
tm_status tm_plan_step_describe(const tm_plan *plan, uint32_t step, tm_plan_step_description *out_description);

typedef struct tm_plan_memory_description {
  uint32_t    struct_size;
  uint32_t    device;                   /* whose own it is; TM_ANY_DEVICE: the host's */
  const char *name;
  uint64_t    bytes;                    /* that the plan takes there: its values, states, workspaces and copies of constants,
                                           inputs, outputs and states that it keeps; the application's own inputs, outputs and
                                           constants are not among them */
} tm_plan_memory_description;
/* TM_OK, TM_END past the last. */
tm_status tm_plan_memory_describe(const tm_plan *plan, uint32_t memory, tm_plan_memory_description *out_description);

#define TM_PLAN_DIGEST_BYTES 32
/* SHA-256 of all that a run does: the graph, devices by what they are, who runs what, what is copied when and where; not of
   names, prices and addresses.  Plans of one digest do the same. */
void tm_plan_digest(const tm_plan *plan, uint8_t out_digest[TM_PLAN_DIGEST_BYTES]);

/* Writes who runs what to a file, whole or not at all.   TM_ERROR_ARGUMENT (no path), TM_ERROR_NO_DEVICE (what it was placed on
   failed, and nobody else was found), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_plan_save(const tm_plan *plan, const char *path, tm_error *error);
/* The plan of that file for the same graph, whatever was learned since: of the options on_failure, wait_for_prepare and lists of
   devices count, all else is the file's.  It is placed anew only when something fails.
   TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_LIMIT (over 1 GiB), TM_ERROR_CORRUPT (damage), TM_ERROR_ARGUMENT (it is of another graph),
   TM_ERROR_NO_DEVICE (devices are not as they were: the text names the first difference), and as tm_plan_create */
tm_status tm_plan_load(tm_graph *graph, const char *path, const tm_plan_options *options, tm_plan **out_plan, tm_error *error);
/* The first step at which two plans of one graph differ, by node, device or what is done to operands.   TM_OK, TM_END (they do not),
   TM_ERROR_ARGUMENT (graphs of different sizes) */
tm_status tm_plan_compare(const tm_plan *a, const tm_plan *b, uint32_t *out_step, tm_error *error);

/* ----------------------------------------------------------------------------------------- explanation of a plan ---- */

/*
 * Why each node of a graph is where it is, what it would cost elsewhere, and what other requirement would move it.  Prices are
 * those of the moment when it is made.  All adds up, to the nanosecond:
 *
 *     cost_ns of a candidate   = run_ns + lowering_ns + staging_ns + setup_share_ns
 *     total_ns of a candidate  = cost_ns + copy_in_ns + copy_out_ns
 *     sum_ns of the plan       = cost_ns of what was chosen for each node + ns of every copy
 *                              = cost_ns + copy_out_ns of what was chosen for each node + given_copy_ns
 *     and were one node moved  = sum_ns + total_ns of that candidate - total_ns of the one that was chosen
 *
 * [any thread] It never changes once it is made; it goes before its context, and needs neither graph nor plan any more.
 */
typedef struct tm_plan_explanation tm_plan_explanation;

#define TM_NEVER_NS   UINT64_MAX        /* a time that there is none of, or that is not known */
#define TM_NO_CHANGE  0xffffffffu       /* no other requirement */
#define TM_NO_CANDIDATE 0xffffffffu

/* The placement that a plan with these options would have.  Only layouts count, so constants need no bytes: a graph that was
   loaded can be explained before anything is bound to it; they are then taken to be aligned well.  Asks every device, those
   too that were not needed so far.  Nobody adds to the graph meanwhile, but it is not sealed.  options may be NULL.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_DEVICE (names the node and what every candidate said), TM_ERROR_LIMIT (max_memory_bytes),
   TM_ERROR_NO_MEMORY */
tm_status tm_graph_explain(tm_graph *graph, const tm_plan_options *options, tm_plan_explanation **out_explanation, tm_error *error);
/* The placement that a plan has, at the prices of now, with what its runs took.  Not while the plan is used.
   TM_ERROR_NO_DEVICE (something it needs is gone: the next run will place it anew, if it can), TM_ERROR_NO_MEMORY */
tm_status tm_plan_explain(const tm_plan *plan, tm_plan_explanation **out_explanation, tm_error *error);
void tm_plan_explanation_destroy(tm_plan_explanation *explanation);

typedef struct tm_plan_summary {
  uint32_t struct_size;
  uint32_t node_count;
  uint32_t overlaps;                    /* 1: devices work at the same time; 0: total_ns is sum_ns */
  uint32_t is_exact;                    /* 1: no placement has a smaller sum than least_sum_ns */
  uint32_t is_current;                  /* 1: what is explained is what would be chosen now; 0: a plan made at other prices */
  uint32_t worst_numerics;              /* accepted; TM_NUMERICS_DEFAULT: each operation's own */
  uint64_t repeats;
  uint64_t max_memory_bytes;            /* 0: no limit */
  uint64_t total_ns;                    /* what one run takes; what is paid once counts by its share */
  uint64_t sum_ns;                      /* the same with one thing after the other */
  uint64_t node_ns;                     /* of that, nodes */
  uint64_t copy_ns;                     /* and copies */
  uint64_t given_copy_ns;               /* of copy_ns, of inputs, constants and states */
  uint64_t bound_ns;                    /* no placement takes less than this; 0: not known */
  uint64_t least_sum_ns;                /* of any placement found; the plan's own sum may be more where things overlap */
  uint64_t planned_ns;                  /* of a plan: total_ns when it was made; else total_ns */
  uint64_t run_count;                   /* of a plan */
  uint64_t measured_ns;                 /* the least of the last runs that tm_plan_explanation_run lists; 0: none was made */
  uint32_t state_memory;                /* where states live between runs, for tm_plan_explanation_memory */
  uint32_t change_count;
} tm_plan_summary;
void tm_plan_explanation_summarize(const tm_plan_explanation *explanation, tm_plan_summary *out_summary);

#define TM_WHY_ONLY     0u              /* nobody else can */
#define TM_WHY_FASTEST  1u              /* its run takes the least */
#define TM_WHY_SETUP    2u              /* another's run takes less, but for its share of what is paid once */
#define TM_WHY_COPIES   3u              /* another's run takes less, but copies to and from it, or for its neighbours, take more */
#define TM_WHY_OVERLAP  4u              /* it costs more in sum, but is done at the same time as other things */
#define TM_WHY_MEMORY   5u              /* it costs more, but the plan keeps to its limit of memory */
#define TM_WHY_PLANNED  6u              /* prices were others when the plan was made */
#define TM_WHY_WEIGHTS  7u              /* it costs more, but the options weigh other things than time, or want one resource */

typedef struct tm_node_explanation {
  uint32_t struct_size;
  uint32_t op;                          /* TM_OP_* */
  uint32_t device;
  uint32_t why;                         /* TM_WHY_* */
  const char *device_name;
  const char *lowering;                 /* "" if there is none */
  uint32_t worst_numerics;              /* accepted of this node */
  uint32_t candidate_count;             /* the first one is what was chosen */
  uint32_t runner_up;                   /* the candidate on another device that a plan with it costs the least; TM_NO_CANDIDATE */
  uint32_t fastest;                     /* the candidate whose run (and lowering, staging) takes the least */
  uint64_t flops;
  uint64_t read_bytes;
  uint64_t written_bytes;
  uint64_t predicted_ns;                /* cost_ns of what was chosen */
  uint64_t regret_ns;                   /* of the runner-up; TM_NEVER_NS without one */
  uint64_t start_ns;                    /* in a run as it is predicted */
  uint64_t end_ns;
  uint64_t wait_ns;                     /* from when its operands are there until its device is free */
  uint32_t is_critical;                 /* 1: the run ends later if it does */
  uint32_t change;                      /* the requirement that would move it at the least time, or TM_NO_CHANGE */
  uint64_t measured_ns;                 /* of a plan: in the last run that was measured node by node; 0: none was */
  uint64_t measured_count;              /* such runs */
} tm_node_explanation;
/* TM_OK, TM_END past the last. */
tm_status tm_plan_explanation_node(const tm_plan_explanation *explanation, uint32_t node, tm_node_explanation *out_node);

typedef struct tm_node_candidate {
  uint32_t    struct_size;
  uint32_t    device;
  const char *device_name;
  const char *lowering;                 /* what is done to operands first; "" if nothing */
  uint32_t    verdict;                  /* TM_VERDICT_* */
  uint32_t    level;
  uint32_t    numerics;
  uint32_t    numerics_flags;
  double      numerics_bound;
  uint32_t    growth;
  uint32_t    accumulator;
  uint64_t    declared_ns;              /* the device's formula */
  double      correction;               /* learned factor; 1 if nothing was measured */
  double      correction_spread;        /* standard deviation of the correction, as a factor; 1 if nothing was measured */
  uint64_t    sample_count;             /* measurements behind the correction */
  uint64_t    workspace_bytes;
  const char *reason;                   /* a sentence for people */
  /* Where it can run.  The sums are at the head of this section. */
  uint64_t    run_ns;                   /* declared_ns * correction */
  uint64_t    lowering_ns;
  uint64_t    staging_ns;               /* operands from and to host memory in each run, as it cannot have them where they lie */
  uint64_t    setup_ns;                 /* what is still to be paid once */
  uint64_t    setup_share_ns;           /* what of it one run bears */
  uint64_t    cost_ns;
  uint64_t    copy_in_ns;               /* copies of operands that nobody else needs there, everything else as it is */
  uint64_t    copy_out_ns;              /* copies of results to where they are read, everything else as it is */
  uint64_t    total_ns;
  uint64_t    memory_ns;                /* what its bytes are worth at the price of memory; beside total_ns */
  uint64_t    wait_ns;                  /* for its device, were this node alone moved here; TM_NEVER_NS: not known */
  uint64_t    moved_ns;                 /* what a run would take then; TM_NEVER_NS: not known */
  uint64_t    forced_ns;                /* the least sum of a plan with the node here and all others where that is best */
  uint64_t    regret_ns;                /* forced_ns - least_sum_ns */
  uint32_t    in_place;                 /* 1: it runs where its operands are */
  uint32_t    is_bound;                 /* 1: forced_ns and regret_ns are lower bounds, as there is a limit of memory, say */
  uint32_t    change;                   /* the requirement that would bring the node here at the least time, or TM_NO_CHANGE */
  uint32_t    reserved;
} tm_node_candidate;
/* What was chosen, others by what a plan with them costs, then those that cannot.
   TM_OK, TM_END past the last node, past its last candidate */
tm_status tm_plan_explanation_candidate(const tm_plan_explanation *explanation, uint32_t node, uint32_t index,
                                        tm_node_candidate *out_candidate);

#define TM_CHANGE_NUMERICS 1u           /* another class: value */
#define TM_CHANGE_REPEATS  2u           /* another number of runs: value */
#define TM_CHANGE_MEMORY   3u           /* no limit of memory */
#define TM_CHANGE_ALLOWED  4u           /* the device `value`, which the options exclude */
#define TM_CHANGE_BITS     5u           /* bits may differ from run to run */
#define TM_CHANGE_RESOURCE 6u           /* more than one resource */
#define TM_CHANGE_WEIGHTS  7u           /* nothing but the time of a run counts */

/* What the plan would be with one requirement changed. */
typedef struct tm_plan_change {
  uint32_t    struct_size;
  uint32_t    kind;                     /* TM_CHANGE_* */
  uint64_t    value;
  const char *device_name;              /* ALLOWED; else "" */
  uint32_t    is_possible;              /* 0: no plan meets it */
  uint32_t    moved_count;              /* nodes that would run elsewhere, or in another way */
  uint64_t    total_ns;                 /* of a run then */
} tm_plan_change;
/* Those that were tried, whether they move anything or not; none for graphs of over 20,000 nodes.   TM_OK, TM_END past the last. */
tm_status tm_plan_explanation_change(const tm_plan_explanation *explanation, uint32_t change, tm_plan_change *out_change);

typedef struct tm_changed_node {
  uint32_t    struct_size;
  uint32_t    device;
  const char *device_name;
  const char *lowering;
  uint32_t    moves;                    /* 1: it is not where it is now */
  uint32_t    is_farther;               /* 1: of REPEATS: a number nearer to the declared one moves it there, too */
} tm_changed_node;
/* Where a node would be then.   TM_OK, TM_END (past the last, or the change is not possible) */
tm_status tm_plan_explanation_changed_node(const tm_plan_explanation *explanation, uint32_t change, uint32_t node,
                                           tm_changed_node *out_node);

/* A value that is made, or given, in one memory and needed in another; once a memory, however many read it there. */
typedef struct tm_plan_copy {
  uint32_t struct_size;
  uint32_t value;                       /* of the graph, no view */
  uint32_t from;                        /* for tm_plan_explanation_memory */
  uint32_t to;
  uint32_t producer;                    /* node that makes it, or TM_NO_NODE: it is given */
  uint32_t reader;                      /* the first node that reads it there; TM_NO_NODE: only the end does */
  uint64_t bytes;
  uint64_t ns;                          /* in each run; of a constant its share of being copied once */
  uint64_t start_ns;
  uint64_t end_ns;
} tm_plan_copy;
/* By value and memory.   TM_OK, TM_END past the last. */
tm_status tm_plan_explanation_copy(const tm_plan_explanation *explanation, uint32_t copy, tm_plan_copy *out_copy);

typedef struct tm_plan_link {
  uint32_t struct_size;
  uint32_t from;                        /* for tm_plan_explanation_memory */
  uint32_t to;
  uint32_t copy_count;
  uint64_t bytes;
  uint64_t ns;
} tm_plan_link;
/* Pairs of memories between which something is copied.   TM_OK, TM_END past the last. */
tm_status tm_plan_explanation_link(const tm_plan_explanation *explanation, uint32_t link, tm_plan_link *out_link);

typedef struct tm_explained_memory {
  uint32_t    struct_size;
  uint32_t    device;                   /* whose own it is; TM_ANY_DEVICE: the host's */
  const char *name;
  uint64_t    peak_bytes;               /* that the plan takes there, as tm_plan_memory_describe tells */
  uint64_t    max_bytes;                /* 0: no limit */
  uint64_t    ns_per_mib;               /* about what a run would save by another MiB; 0: there is enough */
} tm_explained_memory;
/* TM_OK, TM_END past the last. */
tm_status tm_plan_explanation_memory(const tm_plan_explanation *explanation, uint32_t memory, tm_explained_memory *out_memory);

/* One after the other what decides when a run is over. */
typedef struct tm_critical_step {
  uint32_t struct_size;
  uint32_t node;                        /* or TM_NO_NODE: a copy */
  uint32_t copy;                        /* for tm_plan_explanation_copy */
  uint32_t reserved;
  uint64_t ns;
} tm_critical_step;
/* Nothing is listed where nothing overlaps: all nodes and copies are on it then.   TM_OK, TM_END past the last. */
tm_status tm_plan_explanation_critical(const tm_plan_explanation *explanation, uint32_t step, tm_critical_step *out_step);

/* A whole plan that was looked at, and is not the one. */
typedef struct tm_rejected_plan {
  uint32_t    struct_size;
  uint32_t    device;                   /* of "single-device" whose; else TM_ANY_DEVICE */
  const char *name;                     /* "heft", "cpop", "single-device", ... */
  const char *device_name;              /* "" if there is none */
  uint64_t    total_ns;                 /* of a run, in the order that suits it best, or where that would be less than the plan takes
                                           in the one in which a thread can hand it out */
  uint64_t    sum_ns;
  uint64_t    copied_bytes;
  uint64_t    excess_bytes;             /* beyond the limit of memory */
} tm_rejected_plan;
/* By time.   TM_OK, TM_END past the last. */
tm_status tm_plan_explanation_rejected(const tm_plan_explanation *explanation, uint32_t index, tm_rejected_plan *out_plan);

typedef struct tm_explained_run {
  uint32_t struct_size;
  uint32_t replayed;                    /* as in tm_plan_report */
  uint64_t measured_ns;
} tm_explained_run;
/* The last runs of a plan, the newest first.   TM_OK, TM_END past the last (there is none for a graph). */
tm_status tm_plan_explanation_run(const tm_plan_explanation *explanation, uint32_t run, tm_explained_run *out_run);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* TENSORMORPH_GRAPHS_H */
