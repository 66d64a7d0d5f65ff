/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu_kernel.h - one kernel, declared once: what it takes, how exactly, at what cost, which shader files it is made of
 * and how a launch is planned.  query, prepare and launch read the same row, so what is claimed is what is run.
 *
 * A module's text is: what the row needs enabled, `const WG: u32` (invocations of a workgroup, along x), the plan's
 * prologue, then the row's shader files in order.  Equal texts are compiled once a device.  The layout of bindings in
 * group 0 is fixed: 0 the parameters of the pass (uniform), then the inputs (storage, read), the outputs and the
 * workspace, if one is declared (storage, read_write), all as arrays of u32 or of vectors of it.
 *
 * An operand's binding begins at its lowest byte, rounded down to the device's offset alignment; element 0 lies
 * webgpu_first_byte() bytes into it, which is 0 unless a stride is negative.
 */
#ifndef WEBGPU_KERNEL_H
#define WEBGPU_KERNEL_H

#include <stdint.h>

#include "kernel_judge.h"

#define WEBGPU_NEEDS_F16       0x1u     /* the module begins with `enable f16;` */
#define WEBGPU_NEEDS_SUBGROUPS 0x2u     /* the subgroup functions; the device's subgroup sizes stand in its limits */

#define WEBGPU_PASSES 4
#define WEBGPU_PARAMETER_WORDS 96
#define WEBGPU_PROLOGUE_BYTES 6144

/* Turns of all loops of one invocation together.  Mesa's software rasterizer ends every loop, silently, after 65535 of an
   invocation's turns; and a long invocation keeps a display waiting.  Rows refuse, or make more passes. */
#define WEBGPU_MOST_TURNS 60000u

/* What one device can do; made once, when the adapters are listed. */
typedef struct webgpu_limits {
  uint64_t binding_bytes;       /* of one binding; below 2^31, so that shaders may count bytes in an i32 */
  uint64_t buffer_bytes;
  uint32_t offset_alignment;    /* of a binding's start */
  uint32_t workgroup_size;      /* invocations along x; a power of two, 64 to 256 */
  uint32_t workgroup_bytes;     /* workgroup memory */
  uint32_t workgroup_count;     /* along one dimension of a dispatch */
  uint32_t storage_buffers;     /* of one stage */
  uint32_t features;            /* WEBGPU_NEEDS_* that it has */
  uint32_t subgroup_min, subgroup_max;
  uint32_t is_processor;        /* it runs on the host's cores */
  uint32_t reserved;
} webgpu_limits;

/* One dispatch.  Passes of a launch run one after the other and see each other's writes. */
typedef struct webgpu_pass {
  const char *entry;            /* the module's entry point; static */
  uint32_t    workgroups[3];    /* each at least 1 and at most limits->workgroup_count */
  uint32_t    parameter_count;
  uint32_t    parameters[WEBGPU_PARAMETER_WORDS];       /* the uniform's words; zero behind parameter_count */
} webgpu_pass;

/* Made at prepare; the caller has zeroed it.  Without a pass the launch does nothing. */
typedef struct webgpu_plan {
  uint32_t    pass_count;
  uint32_t    prologue_length;
  webgpu_pass passes[WEBGPU_PASSES];
  char        prologue[WEBGPU_PROLOGUE_BYTES];
} webgpu_plan;

/* Named webgpu_add_f32. */
typedef struct webgpu_row webgpu_row;
struct webgpu_row {
  KERNEL_CLAIM;
  uint32_t    needs;                    /* WEBGPU_NEEDS_* */
  const char *const *shaders;           /* embedded files (webgpu_shaders.h), ended by NULL */
  const char *body;                     /* whatever `plan` makes of it; may be NULL */
  /* 0 when this row can run the operation (formats have matched); else TM_REASON_* bits and the operand they are about.
     NULL: every operand must be contiguous, nothing else.  The size of bindings is not its business. */
  uint32_t (*refuses)(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand);
  /* Where an operand exceeds a binding: the axis to split and the largest extent of a part.  0: no split helps.
     NULL: webgpu_split_output. */
  int (*split)(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change);
  /* Nanoseconds without the launch; a formula. */
  uint64_t (*cost_ns)(const webgpu_limits *limits, const tm_operation *operation);
  uint64_t (*workspace_bytes)(const webgpu_limits *limits, const tm_operation *operation);      /* NULL: none */
  /* Fills the passes and the prologue; reads dims and attributes freely, allocates nothing. */
  void (*plan)(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan);
};

/* All tables of webgpu_row, ended by NULL (webgpu_rows.c). */
extern const kernel_row_table *const webgpu_row_tables[];

/* ---- for plans (webgpu_plan.c) ---- */

/* Appends WGSL to the prologue, as snprintf would. */
void webgpu_say(webgpu_plan *plan, const char *format, ...);

/* Appends `@group(0) @binding(1) var<storage, read> x0: array<u32>;` and so on: inputs x0, x1, ..., outputs y (y1, ...),
   the workspace w. */
void webgpu_say_bindings(webgpu_plan *plan, const tm_operation *operation, int has_workspace);

/* Adds a pass for `items` invocations along x, each of which repeats with a stride of num_workgroups.x * WG until all
   items are done (at most `limits->workgroup_count` workgroups are started).  0 items add none: NULL. */
webgpu_pass *webgpu_add_pass(const webgpu_limits *limits, webgpu_plan *plan, const char *entry, uint64_t items);

/* Appends words to a pass's parameters. */
void webgpu_put(webgpu_pass *pass, uint32_t word);

/* Where element 0 lies in the operand's binding, in bytes. */
uint32_t webgpu_first_byte(const webgpu_limits *limits, const tm_operand *operand);

/* ---- for predicates and costs (webgpu_measure.c) ---- */

/* TM_REASON_LAYOUT if a stride is no multiple of `granule`, TM_REASON_SIZE if a shader could not count it, or 0. */
uint32_t webgpu_refuses_steps(const tm_operand *operand, int64_t granule);

/* The axis of an operand that goes along with an axis of output 0; TM_MAX_RANK if none does. */
typedef uint32_t (*webgpu_axis_fn)(const tm_operation *operation, uint32_t operand, uint32_t axis);

/* The body of a `split`: the outermost axis of output 0 that brings all operands below a binding, or that does most
   towards it, and the largest extent of a part. */
int webgpu_split_by(const webgpu_limits *limits, const tm_operation *operation, webgpu_axis_fn axis_of, tm_change *out_change);

/* The usual `split`: for operations whose operands share the output's axes. */
int webgpu_split_output(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change);

/* The usual body of cost_ns: `units` of work at `units_per_us`, and the bytes of all operands at the memory's rate; the
   slower of the two, on a processor both slower. */
uint64_t webgpu_cost_ns(const webgpu_limits *limits, double units, double units_per_us, double bytes);

#endif
