/* SPDX-License-Identifier: Apache-2.0 */
#include "explain_words.h"

#include <stdio.h>
#include <string.h>

#include "numerics_text.h"
#include "printable_text.h"
#include "quantity.h"

const char *tm_why_name(uint32_t why) {
  static const char *const names[] = { "only choice", "fastest", "set-up", "copies", "overlap", "memory", "as planned", "weights" };
  return why < sizeof names / sizeof *names ? names[why] : "?";
}

void tm_way_describe(const char *device, const char *lowering, char *out, size_t capacity) {
  snprintf(out, capacity, "%s%s", device, lowering[0] != '\0' ? " (changed)" : "");
}

const char *tm_memory_name(const tm_explained_graph *explained, uint32_t memory) {
  tm_explained_memory one = { .struct_size = sizeof one };
  return tm_plan_explanation_memory(explained->explanation, memory, &one) == TM_OK ? one.name : "?";
}

void tm_node_describe(const tm_explained_graph *explained, uint32_t node, char *out, size_t capacity) {
  tm_node_description one = { .struct_size = sizeof one };
  const bool has_name = tm_graph_node_describe(explained->graph, node, &one) == TM_OK && one.name[0] != '\0';
  snprintf(out, capacity, has_name ? "%u '%.200s'" : "%u", node, has_name ? one.name : "");
}

void tm_value_describe(const tm_explained_graph *explained, uint32_t value, char *out, size_t capacity) {
  static const char *const kinds[] = { "value", "input", "constant", "state" };
  tm_value_description one = { .struct_size = sizeof one };
  char                 node[256];
  if (tm_graph_value_describe(explained->graph, value, &one) != TM_OK) return;
  tm_node_describe(explained, one.node, node, sizeof node);
  if (one.kind <= TM_VALUE_STATE) snprintf(out, capacity, "%s '%.200s'", kinds[one.kind], one.name);
  else snprintf(out, capacity, "the result of %s", node);
}

void tm_difference_describe(uint64_t now_ns, uint64_t then_ns, char *out, size_t capacity) {
  tm_quantity  difference;
  const bool   is_less = then_ns < now_ns;
  const char  *text = tm_quantity_duration(is_less ? now_ns - then_ns : then_ns - now_ns, &difference);
  if (now_ns == then_ns) snprintf(out, capacity, "as long");
  else snprintf(out, capacity, "%s %s", text, is_less ? "less" : "more");
}

void tm_changed_total_describe(const tm_plan_summary *summary, const tm_plan_change *change, char *out, size_t capacity) {
  char       difference[64];
  const bool is_about = summary->max_memory_bytes != 0 && change->kind != TM_CHANGE_MEMORY && change->total_ns != summary->total_ns;
  tm_difference_describe(summary->total_ns, change->total_ns, difference, sizeof difference);
  snprintf(out, capacity, "%s%s", is_about ? "about " : "", difference);
}

void tm_measured_describe(double correction, double spread, uint64_t samples, char *out, size_t capacity) {
  out[0] = '\0';
  if (samples != 0)
    snprintf(out, capacity, "x%.3g within x%.3g of its formula in %llu run%s", correction, spread, (unsigned long long)samples,
             samples == 1 ? "" : "s");
}

void tm_part_append(char *text, size_t capacity, const char *head, const char *part) {
  const size_t used = strlen(text);
  if (part[0] != '\0' && used < capacity) snprintf(text + used, capacity - used, "%s%s%s", used == 0 ? "" : "; ", head, part);
}

tm_table_look tm_explained_table_look(const tm_invocation *invocation) {
  return (tm_table_look){ .width = tm_arguments_has(&invocation->arguments, "wide") ? 0 : invocation->terminal.width,
                          .color = invocation->terminal.color,
                          .all_in = "--wide and --json show" };
}

void tm_explained_absent_print(const tm_explained_graph *explained, tm_output_stream *stream, size_t width) {
  const tm_elsewhere_notes *absent = explained->absent;
  for (uint32_t i = 0; i < absent->count; i++) tm_printable_sentence(stream, "note: ", absent->texts[i], width);
}

/* ---- why ---- */

static tm_plan_summary summary_of(const tm_explained_graph *explained) {
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_explanation_summarize(explained->explanation, &summary);
  return summary;
}

tm_regret tm_candidate_regret(const tm_explained_graph *explained, const tm_node_candidate *candidate) {
  const tm_plan_summary summary = summary_of(explained);
  if (summary.overlaps == 0) return (tm_regret){ candidate->regret_ns != TM_NEVER_NS, false, candidate->regret_ns };
  if (candidate->moved_ns == TM_NEVER_NS) return (tm_regret){ .is_known = false };
  const bool is_less = candidate->moved_ns < summary.total_ns;
  return (tm_regret){ true, is_less, is_less ? summary.total_ns - candidate->moved_ns : candidate->moved_ns - summary.total_ns };
}

void tm_regret_describe(const tm_regret *regret, char *out, size_t capacity) {
  tm_quantity quantity;
  snprintf(out, capacity, "%s%s", regret->is_less ? "-" : "", regret->ns == 0 ? "0" : tm_quantity_duration(regret->ns, &quantity));
}

/* "a run would be 12.0 ms longer" */
static void describe_longer(const tm_explained_graph *explained, const tm_node_candidate *candidate, char *out, size_t capacity) {
  const tm_regret regret = tm_candidate_regret(explained, candidate);
  tm_quantity     quantity;
  if (!regret.is_known) snprintf(out, capacity, "a run would be an unknown time longer");
  else if (regret.ns == 0) snprintf(out, capacity, "a run would be as long");
  else
    snprintf(out, capacity, "a run would be %s %s", tm_quantity_duration(regret.ns, &quantity),
             regret.is_less ? "shorter" : "longer");
}

/* "; with it on fast:0, the next best, a run would take 12.0 ms more" */
static void append_next(const tm_explained_graph *explained, uint32_t node, const tm_node_explanation *one, uint32_t told,
                        char *out, size_t capacity) {
  tm_node_candidate next = { .struct_size = sizeof next };
  tm_quantity       quantity;
  char              way[160];
  const size_t      used = strlen(out);
  if (one->runner_up == TM_NO_CANDIDATE || one->runner_up == told || used >= capacity) return;
  (void)tm_plan_explanation_candidate(explained->explanation, node, one->runner_up, &next);
  const tm_regret regret = tm_candidate_regret(explained, &next);
  const bool      overlaps = summary_of(explained).overlaps != 0;
  if (!regret.is_known) return;
  tm_way_describe(next.device_name, next.lowering, way, sizeof way);
  snprintf(out + used, capacity - used, "; with it %son %s, the next best%s, a run would take %s%s%s",
           overlaps ? "alone " : "", way, overlaps ? " by the sum" : "", next.is_bound != 0 && !overlaps ? "at least " : "",
           regret.ns == 0 ? "as long" : tm_quantity_duration(regret.ns, &quantity),
           regret.ns == 0 ? "" : regret.is_less ? " less" : " more");
}

/* The candidate with which a run would be over first, were this node alone moved there, if that is before the plan's own end: the
   search for a plan does not try everything.  TM_NO_CANDIDATE: there is none. */
static uint32_t find_sooner(const tm_explained_graph *explained, uint32_t node, tm_node_candidate *out_sooner) {
  tm_node_candidate candidate = { .struct_size = sizeof candidate };
  uint64_t          least_ns = summary_of(explained).total_ns;
  uint32_t          found = TM_NO_CANDIDATE;
  for (uint32_t i = 0; tm_plan_explanation_candidate(explained->explanation, node, i, &candidate) == TM_OK; i++) {
    if (!tm_candidate_regret(explained, &candidate).is_less || candidate.moved_ns >= least_ns) continue;
    if (tm_candidate_lacks_room(explained, &candidate)) continue;
    *out_sooner = candidate;
    least_ns = candidate.moved_ns;
    found = i;
  }
  return found;
}

/* "; yet the model would have a run end 36.8 us sooner, by 2.6 %, with it alone on fast:0".  Returns who that is. */
static uint32_t append_sooner(const tm_explained_graph *explained, uint32_t node, char *out, size_t capacity) {
  tm_node_candidate sooner = { .struct_size = sizeof sooner };
  tm_quantity       quantity;
  char              way[160];
  const size_t      used = strlen(out);
  const uint32_t    found = find_sooner(explained, node, &sooner);
  if (found == TM_NO_CANDIDATE || used >= capacity) return found;
  const uint64_t total_ns = summary_of(explained).total_ns, less_ns = total_ns - sooner.moved_ns;
  tm_way_describe(sooner.device_name, sooner.lowering, way, sizeof way);
  snprintf(out + used, capacity - used, "; yet the model would have a run end %s sooner, by %.2g %%, with it alone on %s",
           tm_quantity_duration(less_ns, &quantity), 100.0 * (double)less_ns / (double)total_ns, way);
  return found;
}

void tm_why_describe(const tm_explained_graph *explained, uint32_t node, char *out, size_t capacity) {
  tm_node_explanation one = { .struct_size = sizeof one };
  tm_node_candidate   chosen = { .struct_size = sizeof chosen }, faster = { .struct_size = sizeof faster };
  tm_quantity         run, share;
  char                way[160], sooner[64], longer[96];
  out[0] = '\0';
  if (tm_plan_explanation_node(explained->explanation, node, &one) != TM_OK) return;
  (void)tm_plan_explanation_candidate(explained->explanation, node, 0, &chosen);
  (void)tm_plan_explanation_candidate(explained->explanation, node, one.fastest, &faster);
  tm_way_describe(faster.device_name, faster.lowering, way, sizeof way);
  const uint64_t chosen_ns = chosen.run_ns + chosen.lowering_ns + chosen.staging_ns;
  const uint64_t faster_ns = faster.run_ns + faster.lowering_ns + faster.staging_ns;
  tm_difference_describe(chosen_ns, faster_ns, sooner, sizeof sooner);
  const char *faster_text = tm_quantity_duration(faster_ns, &run);
  describe_longer(explained, &faster, longer, sizeof longer);
  tm_node_candidate best = { .struct_size = sizeof best };
  const bool can_end_sooner = find_sooner(explained, node, &best) != TM_NO_CANDIDATE;
  switch (one.why) {
    case TM_WHY_ONLY: snprintf(out, capacity, "nobody else can run it as asked"); break;
    case TM_WHY_FASTEST: snprintf(out, capacity, "it runs fastest there, in %s", faster_text); break;
    case TM_WHY_SETUP:
      snprintf(out, capacity, "%s would run it in %s (%s), but each run would also bear %s of what is paid once there", way,
               faster_text, sooner, tm_quantity_duration(faster.setup_share_ns, &share));
      break;
    case TM_WHY_COPIES:
      snprintf(out, capacity,
               "%s would run it in %s (%s), but with the copies that this takes, there and around it, %s", way, faster_text, sooner,
               longer);
      break;
    case TM_WHY_OVERLAP:
      snprintf(out, capacity, "it is not the cheapest place, but others work meanwhile%s",
               can_end_sooner ? "" : ", and with it alone on another device no run is known to end sooner");
      break;
    case TM_WHY_MEMORY:
      if (one.fastest == 0) snprintf(out, capacity, "without its limit of memory the plan would have it elsewhere");
      if (one.fastest != 0)
        snprintf(out, capacity, "%s would run it in %s (%s), but the plan keeps to its limit of memory", way, faster_text, sooner);
      break;
    case TM_WHY_WEIGHTS: snprintf(out, capacity, "it is not the cheapest place, but not only time counts"); break;
    default: snprintf(out, capacity, "prices were others when the plan was made"); break;
  }
  const uint32_t told = append_sooner(explained, node, out, capacity);
  if (one.why != TM_WHY_COPIES || one.runner_up != one.fastest) append_next(explained, node, &one, told, out, capacity);
}

/* ---- what would change it ---- */

void tm_change_describe(const tm_plan_change *change, char *out, size_t capacity) {
  switch (change->kind) {
    case TM_CHANGE_NUMERICS: snprintf(out, capacity, "--accept N%llu", (unsigned long long)change->value); break;
    case TM_CHANGE_REPEATS: snprintf(out, capacity, "--repeats %llu", (unsigned long long)change->value); break;
    case TM_CHANGE_MEMORY: snprintf(out, capacity, "no --max-memory"); break;
    case TM_CHANGE_ALLOWED: snprintf(out, capacity, "%s allowed", change->device_name); break;
    case TM_CHANGE_WEIGHTS: snprintf(out, capacity, "time alone that counts"); break;
    case TM_CHANGE_BITS: snprintf(out, capacity, "bits that may differ from run to run"); break;
    default: snprintf(out, capacity, "more than one resource"); break;
  }
}

bool tm_candidate_lacks_room(const tm_explained_graph *explained, const tm_node_candidate *candidate) {
  tm_plan_change change = { .struct_size = sizeof change };
  if (candidate->verdict != TM_VERDICT_SLOWER || candidate->change == TM_NO_CHANGE) return false;
  return tm_plan_explanation_change(explained->explanation, candidate->change, &change) == TM_OK && change.kind == TM_CHANGE_MEMORY;
}

const char *tm_candidate_verdict(const tm_explained_graph *explained, const tm_node_candidate *candidate) {
  return tm_candidate_lacks_room(explained, candidate) ? "no room" : tm_verdict_name(candidate->verdict);
}

/* The last of those from `first` on that ask for the same with another value. */
static uint32_t last_alike(const tm_explained_graph *explained, uint32_t first, const tm_plan_change *change) {
  tm_plan_change other = { .struct_size = sizeof other };
  uint32_t       last = first;
  const bool     has_range = change->kind == TM_CHANGE_NUMERICS || change->kind == TM_CHANGE_REPEATS;
  while (has_range && tm_plan_explanation_change(explained->explanation, last + 1, &other) == TM_OK && other.kind == change->kind)
    last++;
  return last;
}

void tm_changes_describe(const tm_explained_graph *explained, char *out, size_t capacity) {
  tm_plan_change change = { .struct_size = sizeof change };
  size_t         used = 0;
  out[0] = '\0';
  for (uint32_t i = 0; tm_plan_explanation_change(explained->explanation, i, &change) == TM_OK && used < capacity; i++) {
    char           text[160], end[40] = "";
    const uint32_t last = last_alike(explained, i, &change);
    tm_change_describe(&change, text, sizeof text);
    (void)tm_plan_explanation_change(explained->explanation, last, &change);
    if (last != i)
      snprintf(end, sizeof end, " to %s%llu", change.kind == TM_CHANGE_NUMERICS ? "N" : "", (unsigned long long)change.value);
    const int length = snprintf(out + used, capacity - used, "%s%s%s", used == 0 ? "" : ", ", text, end);
    used += length < 0 ? 0 : (size_t)length;
    i = last;
  }
}
