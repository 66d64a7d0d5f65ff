/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_grid.h - where two models differ, at a glance: a line for each kind of tensor, a mark for each layer, heavier where more
 * has changed.
 */
#ifndef TM_CLI_LAYER_GRID_H
#define TM_CLI_LAYER_GRID_H

#include "layer_groups.h"

/* Kinds that are the same everywhere are counted only, unless `with_same`.  width 0: no limit; else one mark stands for several
   layers where there are too many.  false, and nothing is printed, if no name has a layer. */
bool tm_layer_grid_print(const tm_layer_groups *groups, bool with_same, tm_table_look look, tm_output_stream *stream);

#endif
