/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "elsewhere_notes.h"
#include "explain_graph.h"
#include "explain_op.h"
#include "op_request.h"
#include "session.h"

/* Why, the candidates say; here is that, and what would change it. */
static void describe_nobody(const tm_op_request *request, const tm_explanation_summary *summary, const char *left_out, char *text,
                            size_t capacity) {
  const bool has_flip = summary->flip[0] != '\0';
  snprintf(text, capacity, "no device can run %s as asked; %s%s%s", request->op.name,
           has_flip ? summary->flip : "no --accept would change that", left_out[0] != '\0' ? "; " : "", left_out);
}

static int explain(tm_context *context, const tm_op_request *request, tm_invocation *invocation) {
  const tm_run_options options = { .struct_size = sizeof options,
                                   .worst_numerics = TM_NUMERICS_DEFAULT,
                                   .repeats = (uint32_t)tm_arguments_count(&invocation->arguments, "repeats", 0) };
  tm_explanation      *explanation = NULL;
  tm_error             error = TM_CLI_ERROR_INIT;
  tm_elsewhere_notes   absent = { .count = 0 };
  const uint32_t       attribute_bytes = request->op.attribute_bytes;
  if (tm_explain(context, request->op.op, attribute_bytes > 0 ? request->attributes.value.bytes : NULL, attribute_bytes,
                 request->inputs, request->input_count, request->outputs, request->op.output_count, &options,
                 &explanation, &error) != TM_OK)
    return tm_complain(&error);
  const tm_explained_op  explained = { request, explanation, &absent, options.repeats };
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  char                   nobody[1024] = "";
  tm_elsewhere_notes_absent(&absent, context, &invocation->preferences.devices, "goes");
  const char *left_out = tm_elsewhere_notes_left_out(&absent, context);
  tm_explanation_summarize(explanation, &summary);
  if (summary.chosen == TM_ANY_DEVICE) describe_nobody(request, &summary, left_out, nobody, sizeof nobody);
  if (invocation->preferences.json) tm_explained_op_print_json(&explained, invocation->output);
  else tm_explained_op_print(&explained, invocation);
  tm_explanation_destroy(explanation);
  return nobody[0] == '\0' ? TM_EXIT_OK : tm_complain_as(TM_EXIT_TROUBLE, "%s", nobody);
}

/* What goes with one of the two only. */
static int check_usage(const tm_arguments *arguments, bool has_graph) {
  static const char *const of_op[] = {"dtype",       "shape", "output-dtype", "attr", "transpose-a",
                                      "transpose-b", "axis",  "constant",     NULL};
  static const char *const of_graph[] = { "node", "max-memory", NULL };
  if (has_graph == (arguments->operand_count != 0))
    return tm_complain_as(TM_EXIT_USAGE,
                          "%s: usage: tensormorph explain OP [OPTION...], or explain --graph FILE [OPTION...]; --help says more",
                          has_graph ? "an operation and a graph" : "something is missing");
  for (const char *const *name = has_graph ? of_op : of_graph; *name != NULL; name++)
    if (tm_arguments_has(arguments, *name))
      return tm_complain_as(TM_EXIT_USAGE, "--%s goes with %s only", *name, has_graph ? "an operation" : "--graph");
  return TM_EXIT_OK;
}

static int run_op(tm_invocation *invocation) {
  const tm_session_needs needs = { .uses_profile = true };
  tm_context            *context = NULL;
  tm_op_request          request;
  tm_error               error = TM_CLI_ERROR_INIT;
  const uint64_t         repeats = tm_arguments_count(&invocation->arguments, "repeats", 1);
  if (repeats == 0 || repeats > UINT32_MAX) return tm_complain_as(TM_EXIT_USAGE, "--repeats wants 1 to %u", UINT32_MAX);
  if (tm_op_request_parse(&invocation->arguments, &request, &error) != TM_OK) return tm_complain(&error);
  if (tm_session_open(&invocation->preferences, &needs, &context, &error) != TM_OK) return tm_complain(&error);
  /* With every device excluded there is nothing to explain but that. */
  const int exit_code =
      tm_session_require_device(context, &error) == TM_OK ? explain(context, &request, invocation) : tm_complain(&error);
  tm_context_destroy(context);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const bool has_graph = tm_arguments_has(&invocation->arguments, "graph");
  const int  exit_code = check_usage(&invocation->arguments, has_graph);
  if (exit_code != TM_EXIT_OK) return exit_code;
  return has_graph ? tm_explain_graph(invocation) : run_op(invocation);
}

static const tm_flag flags[] = {
  TM_OP_REQUEST_FLAGS,
  TM_EXPLAIN_GRAPH_FLAGS,
  { "wide", 0, TM_FLAG_SWITCH, false, NULL, "all columns of the table, as wide as they need to be" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_explain = {
  .name = "explain",
  .operands = "OP | --graph FILE",
  .operand_min = 0,
  .operand_max = 1,
  .summary = "say where an operation, or each node of a saved graph, would run, what every candidate would cost, why the others "
             "do not get it, and what would change that",
  .notes =
      "Example: tensormorph explain matmul --dtype q4_0,f32 --shape 4096x4096,4096x64\n"
      "The least price is chosen: price = total + setup; total = formula x corr + lower + copies; regret: by how much the price is "
      "above the least, which is what it would cost to have it there.\n"
      "formula: the device's declared cost of a warm run. corr(n): what that was to be multiplied by in n runs that were "
      "measured, of this kind of work or, as long as there are few, of all that the device did; x1(0) before the first. \"x2 within "
      "x1.1\" below the table says how sure that is (standard deviation of the x2, as a factor). lower: changing operands to what "
      "the device takes (lowering). copies: to and from "
      "the device's memory. setup: what is still to be paid once (opening, compiling), with --repeats N an Nth of that; without, "
      "all of it but what is earned by the time that earlier runs lost for want of it, so \"none of it earned\" means that "
      "nothing was lost so far. (changed): the device takes it only after what its line below names.\n"
      "N0: bits equal to the reference. N1(b): within b ulps. N2(b, growth, format): within b x growth x the rounding of "
      "format, of the sum of all terms' magnitudes; growth is 1, log n or n, for n terms. N3(b): mean square error within b.\n"
      "The exit code is 3 if nobody can run it as asked.\n"
      "With --graph: what tm_graph_save wrote is placed as a whole, nothing is run, and no bytes of constants are needed. A line "
      "a node: the time of its device; why (only choice; fastest; set-up: another is faster but for what is paid once; copies: "
      "another is faster but for copies to and from it; overlap: others work meanwhile; memory: its limit); the next best "
      "device, and the regret: how much longer a run would be with the node there and all others where that is best then; of "
      "a plan whose devices work at the same time, with this node alone moved, so that it may be below 0: not everything is tried. "
      "--max-memory is what the plan may take in any one memory; it goes with --graph only, as nobody is passed over for one "
      "operation because of the memory that this would take.\n"
      "With --node: total = formula x corr + lower + copies + setup. copies: what this node alone needs, everything else as it "
      "is, so that totals differ by what moving only this node changes; setup: a run's share of what is paid once. would "
      "change it: the graph placed again with that requirement; the difference is that of whole runs.",
  .flags = flags,
  .run = run,
};
