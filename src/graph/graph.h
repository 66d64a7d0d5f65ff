/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - operations that belong together: nodes and values in arrays, in an order in which they can run.
 *
 *     input, constant, state ---> node ---> result ---> node ---> result ---> output, or the state's next content
 *                                              `--> view (the same memory, other dims)
 *
 * Values and nodes are numbers, given in order from 0.  A value is made once and never changes; a state has the content from
 * before the run for all who read it.  What is added is checked at once, so a graph that exists can run; liveness.h tells
 * which values may share memory.  One thread adds; once sealed a graph is read by any number of threads.
 */
#ifndef TM_GRAPH_GRAPH_H
#define TM_GRAPH_GRAPH_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/name_table.h"
#include "ops/op_table.h"

#define TM_GRAPH_NONE UINT32_MAX        /* no value, no node */
#define TM_GRAPH_LONGEST_NAME 255u      /* bytes */
#define TM_GRAPH_LABEL_CAPACITY 384u    /* of a text that names a value or a node */

typedef enum tm_value_kind {
  TM_GRAPH_INPUT = 1,           /* given at each run */
  TM_GRAPH_CONSTANT,            /* the same bytes in every run */
  TM_GRAPH_STATE,               /* lives across runs, zero at first */
  TM_GRAPH_RESULT,              /* of a node; dense */
  TM_GRAPH_VIEW                 /* of a value that is no view */
} tm_value_kind;

typedef struct tm_value {
  tm_string     name;           /* NUL-terminated; "" for results and views */
  tm_operand    operand;        /* constants have TM_OPERAND_CONSTANT, their views too */
  tm_value_kind kind;
  uint32_t      index;          /* among those of its kind; of a result: which output of its node */
  uint32_t      node;           /* RESULT: who makes it; else TM_GRAPH_NONE */
  uint32_t      base;           /* VIEW: the value in whose memory it lies; else itself */
  uint32_t      carry;          /* STATE: the value that it has after a run; TM_GRAPH_NONE: it stays */
  uint32_t      is_output;      /* one output or more is this value */
  uint64_t      offset_bytes;   /* VIEW: of its first element from the base's first element */
  /* CONSTANT: its first element and what stands for its bytes (execute/runner.h); NULL and 0 until it is bound. */
  const void   *data;
  uint64_t      origin;
  void         *owner;          /* CONSTANT: the application's object; for the layer that bound it */
  const uint8_t *digest;        /* CONSTANT from a file: SHA-256 that the bytes must have; NULL: none was kept */
} tm_value;

typedef struct tm_node {
  tm_string       name;         /* NUL-terminated; "" if it has none */
  const tm_op_row *row;
  const void     *attributes;   /* row->attribute_bytes of them; NULL if there are none */
  const uint32_t *inputs;       /* values */
  const uint32_t *outputs;      /* values; row->output_count of them */
  uint32_t        input_count;
  uint32_t        reserved;
} tm_node;

typedef struct tm_named_output {
  tm_string name;               /* NUL-terminated */
  uint32_t  value;
  uint32_t  reserved;
} tm_named_output;

typedef struct tm_value_list {          /* values of one kind, in order */
  uint32_t *values;
  uint64_t  count;
  uint64_t  capacity;
} tm_value_list;

struct tm_graph {                       /* it must not be moved */
  tm_memory       *memory;
  tm_arena         arena;               /* names, attributes, lists of inputs and outputs */
  void            *owner;               /* for the layer above */
  tm_value        *values;
  tm_node         *nodes;
  tm_named_output *outputs;
  uint32_t         value_count;         /* counts stay below TM_GRAPH_NONE */
  uint32_t         node_count;
  uint32_t         output_count;
  uint32_t         view_count;
  uint64_t         value_capacity;
  uint64_t         node_capacity;
  uint64_t         output_capacity;
  tm_value_list    inputs;
  tm_value_list    constants;
  tm_value_list    states;
  tm_name_table    value_names;         /* of inputs, constants and states */
  tm_name_table    node_names;
  tm_name_table    output_names;
  _Atomic bool     is_sealed;
};
typedef struct tm_graph tm_graph;

/* What a node is made of.  `outputs`: wanted formats, and where the operation needs it (fill) rank and dims; NULL: the
   defaults.  Attributes shorter than the row's are completed with zeros. */
typedef struct tm_node_request {
  const char       *name;               /* NULL or "": none */
  uint32_t          op;
  uint32_t          version;            /* 0: the one of this library */
  const void       *attributes;
  uint32_t          attribute_bytes;
  uint32_t          input_count;
  const uint32_t   *inputs;
  const tm_operand *outputs;
  uint32_t          output_count;
} tm_node_request;

void tm_graph_init(tm_graph *graph, tm_memory *memory);
void tm_graph_deinit(tm_graph *graph);

/* Each adds one thing or nothing.  Operands are complete (tm_operand_derive).  `name` is NUL-terminated.
   TM_ERROR_ARGUMENT (what, where, expected, found), TM_ERROR_NO_MEMORY */
tm_status tm_graph_add_input(tm_graph *graph, const char *name, const tm_operand *operand, uint32_t *out_value, tm_error *error);
/* data may be NULL: tm_graph_bind_constant gives it later. */
tm_status tm_graph_add_constant(tm_graph *graph, const char *name, const tm_operand *operand, uint32_t *out_value, tm_error *error);
/* `operand` is contiguous. */
tm_status tm_graph_add_state(tm_graph *graph, const char *name, const tm_operand *operand, uint32_t *out_value, tm_error *error);
tm_status tm_graph_add_view(tm_graph *graph, uint32_t of, const tm_operand *operand, uint64_t offset_bytes, uint32_t *out_value,
                            tm_error *error);
tm_status tm_graph_add_node(tm_graph *graph, const tm_node_request *request, uint32_t *out_values, tm_error *error);
tm_status tm_graph_add_output(tm_graph *graph, const char *name, uint32_t value, tm_error *error);
tm_status tm_graph_add_carry(tm_graph *graph, uint32_t state, uint32_t value, tm_error *error);

/* Can a tensor with this layout be the constant's?  It is one, without bytes so far, of that layout.   TM_ERROR_ARGUMENT */
tm_status tm_graph_check_bindable(const tm_graph *graph, uint32_t value, const tm_operand *operand, tm_error *error);
/* Where the bytes of such a constant lie; also when sealed.  `owner` is not NULL.  The digest, if there is one, is the caller's
   to check. */
tm_status tm_graph_bind_constant(tm_graph *graph, uint32_t value, const tm_operand *operand, const void *data, uint64_t origin,
                                 void *owner, tm_error *error);
/* The first constant without bytes, or TM_GRAPH_NONE. */
uint32_t tm_graph_unbound(const tm_graph *graph);

/* Nothing is added any more. */
void tm_graph_seal(tm_graph *graph);

/* "input 'x'", "result 1 of node 12 'fc1'"; always terminated. */
void tm_graph_name_value(const tm_graph *graph, uint32_t value, char *text, uint64_t capacity);
void tm_graph_name_node(const tm_graph *graph, uint32_t node, char *text, uint64_t capacity);

/* The node as an operation; its operands (TM_MAX_OPERANDS) are copied to `operands`, to which the result points. */
tm_operation tm_graph_operation(const tm_graph *graph, uint32_t node, tm_operand *operands);

#endif
