/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a graph made ready to run again and again: who runs each node, what is copied when, and where everything lies.
 *
 *     steps       one a node, in the order in which they run: candidate, alternate, prices
 *     actions     what a replay does, one after the other: launches, transfers, waits
 *     locations   where a value's memory lies in one of the memories; those that are never in use at once share a slot
 *
 * A replay (replay.h) walks the actions.  As long as a device has to prove itself, or a kernel is not prepared, all nodes
 * run one by one from host memory instead (careful_replay.h), and so do those that are left when something fails.
 *
 * In memory of a device's own each slot is a buffer, as some devices cannot read and write one buffer in one launch; slots
 * of host memory are parts of one block.
 */
#ifndef TM_EXECUTE_PLAN_H
#define TM_EXECUTE_PLAN_H

#include "base/sha256.h"
#include "base/thread.h"
#include "execute/runner.h"
#include "plugin/device.h"
#include "schedule/graph_choice.h"

#define TM_PLAN_NONE UINT32_MAX

typedef struct tm_plan_step {
  uint32_t node;
  uint32_t placement;           /* of problem.placements */
  uint32_t candidate;           /* of the placement */
  uint32_t alternate;           /* of the placement; TM_PLAN_NONE: there is none */
  uint32_t label;               /* of the solver */
  uint32_t is_direct;
  uint64_t predicted_ns;
  uint64_t alternate_ns;
  uint64_t measured_ns;         /* in the last run that was measured step by step; 0: none was */
  uint64_t measured_count;
} tm_plan_step;

typedef enum tm_action_kind {
  TM_ACTION_LAUNCH,             /* of a synchronous device in host memory: called without further ado */
  TM_ACTION_ENQUEUE,            /* of any other */
  TM_ACTION_UPLOAD,             /* a location of host memory to one of a device's own */
  TM_ACTION_DOWNLOAD,           /* and back */
  TM_ACTION_WAIT,               /* until what was enqueued on the device up to action `from` is done */
  TM_ACTION_CAREFUL,            /* a run from and to host memory: lowerings, operands that cannot be bound */
  TM_ACTION_MOVE,               /* elements from one value to another, both in host memory */
  TM_ACTION_KINDS
} tm_action_kind;

typedef struct tm_plan_action {
  uint32_t kind;                /* tm_action_kind */
  uint32_t place;               /* of problem.places: the device; of CAREFUL, too */
  uint32_t step;                /* LAUNCH, ENQUEUE, CAREFUL; else TM_PLAN_NONE */
  uint32_t value;               /* transfers: what is moved; MOVE: what is read; LAUNCH: how many are of one device in a row */
  uint32_t from;                /* location; CAREFUL: the first of its operands; LAUNCH, ENQUEUE: its launch */
  uint32_t to;                  /* location */
  uint32_t target;              /* MOVE: the value whose layout `to` has; TM_PLAN_NONE: output `output` */
  uint32_t output;              /* MOVE: graph output that is written; TM_PLAN_NONE: none is */
} tm_plan_action;

typedef enum tm_location_kind {
  TM_LOCATION_SLOT,             /* the plan's own, shared over time */
  TM_LOCATION_STATE,            /* lives from run to run */
  TM_LOCATION_KEPT,             /* a constant's copy in a device's memory, made once */
  TM_LOCATION_NEXT,             /* what a state becomes at the end, as long as others read it */
  TM_LOCATION_CONSTANT,         /* the application's */
  TM_LOCATION_INPUT,            /* the application's, given at each run */
  TM_LOCATION_OUTPUT
} tm_location_kind;

typedef struct tm_plan_location {
  uint32_t kind;                /* tm_location_kind */
  uint32_t value;               /* the root (graph value) whose memory it is */
  uint32_t memory;
  uint32_t slot;                /* SLOT: of `slots` */
  uint32_t first;               /* SLOT: actions from which and up to which it is in use */
  uint32_t last;
  uint32_t index;               /* INPUT, OUTPUT: which one */
  uint32_t is_staged;           /* INPUT, OUTPUT: `stage` stands for what the application gives (plan_stage.h) */
  char      *host;              /* host memory: address of the first element; NULL until it is known */
  char      *stage;             /* NULL: none */
  tm_buffer *buffer;            /* memory of a device's own */
  uint64_t   bytes;             /* of the buffer; of host memory: of what it takes */
  uint64_t   first_bytes;       /* offset of the first element in the buffer */
} tm_plan_location;

typedef struct tm_plan_slot {
  uint32_t   memory;
  uint32_t   free_from;         /* while slots are given out */
  uint64_t   bytes;
  uint64_t   offset;            /* host memory: in the block */
  tm_buffer *buffer;
} tm_plan_slot;

/* An operand of a careful run. */
typedef struct tm_plan_operand {
  uint32_t location;
  uint32_t value;
} tm_plan_operand;

/* A binding that has to follow where the application's memory lies. */
typedef struct tm_plan_patch {
  uint32_t binding;
  uint32_t location;
  uint32_t value;               /* that lies there */
} tm_plan_patch;

/* A queue while it is held, and what is under way on it. */
typedef struct tm_plan_queue {
  uint32_t      is_used;        /* by any action */
  uint32_t      is_held;
  uint32_t      takes_queue;    /* actions other than careful ones use it */
  uint32_t      queue;          /* that launches name */
  uint32_t      done_to;        /* all that was enqueued here before this action is done */
  uint32_t      enqueued_to;    /* one past the last action that was enqueued here */
  uint32_t      launch_count;   /* of one replay */
  uint32_t      has_failed;     /* what was not waited for is not done */
  uint64_t      expected_ns;    /* of what was enqueued since the last wait */
  tm_status   (*launch)(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket);      /* what a direct call needs */
  tm_device    *device;
  tm_device_use use;
  void         *workspace;      /* host memory */
  tm_buffer    *workspace_buffer;
  uint64_t      workspace_bytes;
} tm_plan_queue;

/* Memory of the application's that cannot be used as it is: what is used in its place. */
typedef struct tm_plan_bounce {
  void    *memory;
  uint64_t bytes;
} tm_plan_bounce;

typedef enum tm_state_health { TM_STATE_FINE, TM_STATE_LOST } tm_state_health;

/* What a state is while no plan of its memory holds it: a new plan is filled from here. */
typedef struct tm_plan_state {
  uint32_t value;
  uint32_t location;
  uint32_t health;              /* tm_state_health */
  uint32_t is_mirrored;         /* the mirror is what counts */
  void    *mirror;              /* NULL: none; of a state that no run changes it stays, and is what counts, too */
  uint64_t bytes;
} tm_plan_state;

#define TM_PLAN_RECENT_RUNS 16u

typedef struct tm_plan_recent {
  uint64_t measured_ns;         /* 0: it failed */
  uint32_t was_plain;
  uint32_t reserved;
} tm_plan_recent;

typedef struct tm_plan_counters {
  uint64_t runs;
  uint64_t plain_runs;          /* that walked the actions */
  uint64_t plans;               /* times that nodes were placed */
  uint64_t failures;            /* runs in which something failed and was made good */
} tm_plan_counters;

/* What makes a replay, and goes when the graph is placed anew. */
typedef struct tm_plan_program {
  tm_graph_problem  problem;
  tm_arena          arena;
  tm_plan_step     *steps;
  tm_plan_action   *actions;
  tm_plan_location *locations;
  tm_plan_slot     *slots;
  tm_plan_operand  *operands;
  tm_plan_patch    *patches;
  tm_launch        *launches;           /* in the order of actions, all that a plain loop reads of LAUNCH in a row */
  tm_binding       *bindings;
  tm_plan_queue    *queues;             /* [place] */
  uint64_t         *tickets;            /* [action] that was enqueued */
  uint32_t         *roots;              /* [graph value]: in whose memory it lies */
  uint64_t         *offsets;            /* ... and how far from that one's first element */
  uint32_t         *givens;             /* locations of what the application gives at each run */
  uint32_t step_count, action_count, location_count, slot_count, operand_count, patch_count, launch_count, binding_count,
      given_count;
  uint32_t state_memory;
  uint32_t is_bound;                    /* memory is there, and launches are made */
  uint32_t is_pointed;                  /* launches are where the last run had inputs and outputs */
  uint32_t overlaps, is_exact;          /* as in tm_graph_choice */
  uint64_t total_ns, bound_ns, additive_ns;
  uint64_t generation;                  /* of epochs: see tm_plan_epochs */
  void    *block;                       /* host memory of slots */
  uint64_t block_bytes;
  uint64_t *memory_bytes;               /* [memory]: that the plan takes there */
  bool     was_made;                    /* problem and arena are to be freed */
  uint64_t action_capacity, location_capacity, slot_capacity, operand_capacity, patch_capacity;
} tm_plan_program;

typedef struct tm_plan {
  tm_memory       *memory;
  const tm_graph  *graph;
  tm_runner        runner;
  tm_plan_policy   policy;
  uint8_t         *denied;              /* [device] */
  tm_plan_program  program;
  tm_plan_state   *states;              /* [state] */
  tm_plan_bounce  *bounces;             /* inputs, then outputs */
  void           **inputs;              /* where this run has them: first elements; bounces count */
  void           **outputs;
  tm_plan_counters counters;
  tm_plan_recent   recent[TM_PLAN_RECENT_RUNS];         /* [run % TM_PLAN_RECENT_RUNS] */
  uint32_t         alignment;           /* of host memory that any device may be given */
  uint32_t         writes_whole_units;  /* a device in host memory writes beyond what is asked for: outputs have room for that */
  uint32_t         must_replace;        /* something failed: place anew before the next run */
  uint32_t         waits_for_prepare;
  uint32_t         bind_failures;       /* in a row */
  uint32_t         runs_until_bind;     /* before it is tried again */
  /* The thread that prepares kernels. */
  tm_mutex         lock;
  tm_thread        preparer;
  bool             has_preparer;
  _Atomic uint32_t stop_preparing;
  _Atomic uint32_t is_preparing;
} tm_plan;

/* What a run tells. */
typedef struct tm_plan_outcome {
  uint64_t measured_ns;
  uint64_t query_count;
  uint64_t prepare_count;
  uint64_t plan_count;
  uint32_t was_plain;
  uint32_t retries;
  uint32_t fell_back;
  uint32_t rerun_count;         /* nodes that ran a second time */
  char     note[256];           /* what failed; "" if nothing did */
} tm_plan_outcome;

/* What a plan is made of: all is copied but the graph, which outlives it, sealed and bound, and what the runner names. */
typedef struct tm_plan_request {
  tm_memory      *memory;
  const tm_graph *graph;
  tm_runner       runner;
  tm_plan_policy  policy;
  bool            waits_for_prepare;    /* no kernel is prepared while others do its work */
  /* How nodes are placed the first time; NULL: as cheaply as can be. */
  tm_status (*choose)(void *choose_context, tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *out_choice,
                      tm_error *error);
  void           *choose_context;
} tm_plan_request;

/* Places the graph.  It is not moved afterwards.   As tm_graph_problem_init and tm_graph_choice_make */
tm_status tm_plan_init(tm_plan *plan, const tm_plan_request *request, tm_error *error);
void      tm_plan_deinit(tm_plan *plan);

/* Only places it, to see what it would do and take: the graph need not be bound, nothing is prepared, and it cannot run.  What
   the policy names is not copied.  Deinit when that went well. */
tm_status tm_plan_draft(tm_plan *plan, const tm_plan_request *request, tm_error *error);
void      tm_plan_draft_deinit(tm_plan *plan);

/* Places it again (as `request` says, or NULL: as cheaply as can be), on what is there now; states keep their content.  On failure
   the plan is without a program, until the next try. */
tm_status tm_plan_place(tm_plan *plan, const tm_plan_request *request, tm_error *error);

/* Moves when a device's answers may have changed. */
uint64_t  tm_plan_epochs(const tm_plan *plan);
/* Whether all can be replayed: prepared, and proven. */
bool      tm_plan_is_ready(const tm_plan *plan);

#endif
