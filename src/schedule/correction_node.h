/* SPDX-License-Identifier: Apache-2.0 */
/*
 * correction_node.h - what is believed of one number, the logarithm of measured over expected, from what was measured: the
 * closed form of a normal prior, with old measurements fading, outliers clipped and changes noticed.  Whole numbers only.
 */
#ifndef TM_SCHEDULE_CORRECTION_NODE_H
#define TM_SCHEDULE_CORRECTION_NODE_H

#include <stdbool.h>
#include <stdint.h>

#define TM_WEIGHT_ONE 256u      /* one measurement; what is less sure of itself counts for less */
#define TM_LARGEST_WEIGHT (64 * TM_WEIGHT_ONE)

#define TM_VARIANCE_BITS 20     /* from 2^-12 to 2^-32 */

/* Variances of logarithms to base 2, in 2^-12. */
#define TM_SPREAD_DEVICE 34099u /* (2.0 / ln 2)^2: of a device, whatever it declares */
#define TM_SPREAD_CLASS   2131u /* (0.5 / ln 2)^2: of a class of operations, given the device, at the least */
#define TM_SPREAD_BUCKET  1044u /* (0.35 / ln 2)^2: of one operation and size, given the class */
#define TM_NOISE           341u /* (0.2 / ln 2)^2: of one measurement */

typedef struct tm_correction_state {
  int64_t  mean;                /* log2(measured / expected), as in base/log2_fixed.h */
  uint64_t variance;            /* of single measurements around it, in 2^-32 */
  uint64_t samples;             /* all ever seen */
  uint32_t weight;              /* those that count, in TM_WEIGHT_ONE: old ones fade */
  int32_t  drift;               /* consecutive large residuals, signed */
  int32_t  lean;                /* consecutive residuals of one sign that are not nothing, signed */
  uint32_t reserved;
} tm_correction_state;

typedef struct tm_correction_node {
  tm_correction_state live;     /* all that was learned */
  tm_correction_state told;     /* of the snapshot that prices are made from */
  tm_correction_state fresh;    /* learned since it was last written to disk */
  bool                is_reset; /* what is older than `fresh` counts no more: the device changed */
} tm_correction_node;

/* What a level and those above it say. */
typedef struct tm_belief {
  int64_t  mean;
  uint64_t variance;            /* in 2^-32 */
} tm_belief;

/* `spread`: TM_SPREAD_* of this level.  With n measurements of mean m and w = n s^2 / (n s^2 + noise^2) the estimate is
   above + w (m - above), and its variance (1-w) s^2 + (1-w)^2 * (variance above). */
tm_belief tm_belief_refine(tm_belief above, const tm_correction_state *state, uint32_t spread);

/* What other classes of a device say of one, and how far (TM_SPREAD_*) it may be from that. */
typedef struct tm_class_prior {
  tm_belief belief;
  uint32_t  spread;
} tm_class_prior;

/*
 * How much the classes of a device differ can only be seen from classes, however often each ran.  Half of TM_SPREAD_DEVICE,
 * h^2, is given to what they have in common and half, as one observation, to how they differ.  Of k of them with the mean m
 * and the sum of squared distances q, each counted by how sure it is, the variance between classes is s^2 = (h^2 + q) / k and
 * the estimate of another one w m, where w = h^2 / (h^2 + s^2 / k) = k^2 / (k^2 + 1 + q / h^2).  So one class moves another by
 * half of its logarithm, two that agree by 4/5, three by 9/10; and such as contradict each other by less.  No class is
 * thought to be further than 2 s from the others, though: what is beyond must be common to all (costs without any sense).
 */
tm_class_prior tm_class_prior_of(const tm_correction_state *const *others, uint32_t count);

/* Takes a measurement; `above` is what the levels above expect.  may_drift: many that are far off in one direction mean that
   the device changed, and not that something else is measured now. */
void tm_correction_node_learn(tm_correction_node *node, int64_t x, int64_t above, bool may_drift);
/* Is that far from what this settled node knows? */
bool tm_correction_state_is_surprised(const tm_correction_state *state, int64_t x);

/* Takes what another process learned, or this one earlier.  `doubt`: variance in 2^-12 that it is about something else. */
void tm_correction_node_merge(tm_correction_node *node, const tm_correction_state *other, bool is_reset, uint32_t doubt);

#endif
