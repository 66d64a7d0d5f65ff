/* SPDX-License-Identifier: Apache-2.0 */
/* graph_request.h - what a node of a graph asks of devices, wherever a plan puts its operands. */
#ifndef TM_SCHEDULE_GRAPH_REQUEST_H
#define TM_SCHEDULE_GRAPH_REQUEST_H

#include "graph/graph.h"
#include "schedule/graph_problem.h"

/* The request, padding zeroed as far as its key goes.  `is_in_place`: the result goes over what the node reads (in_place.h), and
   devices are told. */
void tm_graph_request_make(const tm_graph *graph, uint32_t node, bool is_in_place, const tm_plan_policy *policy,
                           tm_request *out_request);

/* Whether the device can be given the node's operands where a plan has them: in host memory at multiples of `host_alignment`, or in
   buffers of the device's own. */
bool tm_graph_request_is_bindable(const tm_graph *graph, uint32_t node, const tm_device_slot *device, uint64_t host_alignment);

/* Where the first element of a value that is no view lies in a buffer of the device's own. */
uint64_t tm_graph_request_first_bytes(const tm_operand *operand, const tm_device_slot *device);
/* What such a buffer must hold; UINT64_MAX: more than can be counted. */
uint64_t tm_graph_request_buffer_bytes(const tm_operand *operand, const tm_device_slot *device);

/* What host memory is aligned to, and padded to, so that the device can be given it as well. */
uint32_t tm_graph_request_host_alignment(uint32_t alignment, const tm_device_slot *device);

#endif
