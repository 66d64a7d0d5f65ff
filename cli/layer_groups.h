/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_groups.h - the rows of a comparison added up by layer, by kind, and by both at once, as names tell them (layer_name.h).  A
 * tensor counts where its name in A puts it; what was added, where that in B does.
 */
#ifndef TM_CLI_LAYER_GROUPS_H
#define TM_CLI_LAYER_GROUPS_H

#include "diff_view.h"

typedef enum tm_layer_key { TM_BY_TENSOR, TM_BY_LAYER, TM_BY_KIND } tm_layer_key;

typedef struct tm_layer_figures {
  uint64_t tensor_count;        /* same, differing, removed and added together */
  uint64_t same_count;
  uint64_t differing_count;     /* pairs */
  uint64_t unmeasured_count;    /* of those without figures */
  uint64_t removed_count;
  uint64_t added_count;
  uint64_t element_count;       /* that were compared */
  uint64_t changed_element_count;
  double   distance_squared;    /* sum of |a - b|^2 */
  double   norm_squared;        /* sum of |a|^2 */
  double   max_abs;
  bool     has_values;          /* the last three are of at least one pair */
} tm_layer_figures;

typedef struct tm_layer_kind {
  const char *text;             /* not terminated */
  size_t      length;
  size_t      prefix_length;    /* see layer_name.h */
  uint64_t    first_row;
  tm_layer_figures figures;
} tm_layer_kind;

typedef struct tm_layer {
  uint64_t number;              /* TM_NO_LAYER: tensors outside of layers; comes last */
  tm_layer_figures figures;
} tm_layer;

typedef struct tm_layer_cell {
  size_t kind;                  /* indices */
  size_t layer;
  tm_layer_figures figures;
} tm_layer_cell;

typedef struct tm_layer_groups {
  tm_layer_kind *kinds;         /* in order of their first row */
  tm_layer      *layers;        /* by number */
  tm_layer_cell *cells;         /* those that there are, by kind and then by layer */
  size_t         kind_count;
  size_t         layer_count;
  size_t         cell_count;
  char          *texts;
} tm_layer_groups;

/* Of the job's rows [0, row_count).   TM_ERROR_NO_MEMORY, and nothing is to be freed */
tm_status tm_layer_groups_make(tm_layer_groups *groups, const tm_diff_view *view, uint64_t row_count, tm_error *error);
void      tm_layer_groups_deinit(tm_layer_groups *groups);

void tm_layer_figures_add(tm_layer_figures *sum, const tm_layer_figures *part);
/* Distance of the pairs of a group in relation to their norm; undefined where nothing was compared or
   all of A is zero. */
tm_cell tm_layer_figures_rel_l2(const tm_layer_figures *figures);
tm_cell tm_layer_figures_changed(const tm_layer_figures *figures);

#endif
