/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as text: the three forms, JSON back and forth, and files that say what cannot be. */
#include "graph/graph_file.h"

#include <time.h>

#include "graph/graph_text.h"
#include "unit/graph/graph_case.h"

/* One of everything. */
static void build(graph_case *c) {
  const uint32_t x = add_input(c, "x", f32(2, DIMS(4, 8)));
  const uint32_t w = add_constant(c, "w \"q\" \\ \xc3\xa9", f32(2, DIMS(2, 8)));
  const uint32_t s = add_state(c, "s", f32(2, DIMS(4, 2)));
  const tm_matmul_attributes attributes = { .transpose_b = 1 };
  uint32_t xw;
  assert_int_equal(try_node(c, "fc", TM_OP_MATMUL, &attributes, sizeof attributes, VALUES(x, w), 2, &xw), TM_OK);
  const uint32_t sum = add_binary(c, TM_OP_ADD, s, xw);
  tm_operand transposed = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 2, 4 }, .strides_bytes = { 4, -8 }, .alignment = 1 };
  assert_int_equal(tm_operand_derive(&transposed, NULL), TM_OK);
  const uint32_t view = add_view(c, sum, transposed, 24);
  add_output(c, "sum", sum);
  add_output(c, "flipped", view);
  add_carry(c, s, sum);
}

static char *print(const graph_case *c, tm_graph_form form) {
  const uint64_t length = tm_graph_write(&c->graph, form, NULL, NULL, 0);
  char *text = malloc(length + 2);
  assert_non_null(text);
  memset(text, '#', length + 2);
  assert_int_equal(tm_graph_write(&c->graph, form, NULL, text, length + 1), length);
  assert_int_equal(text[length], '\0');
  assert_int_equal(text[length + 1], '#');
  return text;
}

static void text_is_for_people(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  build(&c);
  char *text = print(&c, TM_FORM_TEXT);
  assert_string_equal(text,
                      "graph: 1 input, 1 constant, 1 state, 2 nodes, 2 outputs\n"
                      "%0 = input \"x\" f32 [4,8]\n"
                      "%1 = constant \"w \\\"q\\\" \\\\ \xc3\xa9\" f32 [2,8], no bytes yet\n"
                      "%2 = state \"s\" f32 [4,2], then %4\n"
                      "%3 = matmul(%0, %1) {0000000001000000} -> f32 [4,2]  # node 0 \"fc\"\n"
                      "%4 = add(%2, %3) -> f32 [4,2]  # node 1\n"
                      "%5 = view of %4 at byte 24, f32 [2,4] strides [4,-8]\n"
                      "output \"sum\" = %4\n"
                      "output \"flipped\" = %5\n");
  free(text);
  case_end(&c);
}

static void dot_names_every_edge(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  build(&c);
  char *text = print(&c, TM_FORM_DOT);
  static const char *const lines[] = {
    "digraph tensormorph {\n", "  v0 [shape=ellipse, label=\"input\\nx\\nf32 [4,8]\"];\n", "\\nw \\\"q\\\" \\\\ \xc3\xa9\\n",
    "  n0 [shape=box, label=\"matmul\\nfc\"];\n", "  v0 -> n0;\n", "  n0 -> n1 [label=\"f32 [4,2]\"];\n",
    "  n1 -> v5 [style=dashed, label=\"f32 [4,2]\"];\n", "  n1 -> v2 [style=dotted, constraint=false, label=\"f32 [4,2]\"];\n",
    "  v5 -> o1;\n}",
  };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0] - 1; i++)
    if (strstr(text, lines[i]) == NULL) fail_msg("%s\ndoes not say\n%s", text, lines[i]);
  free(text);
  case_end(&c);
}

static void texts_are_cut_where_there_is_no_room(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  build(&c);
  for (int form = TM_FORM_TEXT; form <= TM_FORM_JSON; form++) {
    char *whole = print(&c, (tm_graph_form)form);
    const uint64_t length = strlen(whole);
    for (uint64_t capacity = 1; capacity <= length + 1; capacity++) {
      char *cut = malloc(capacity);
      assert_non_null(cut);
      assert_int_equal(tm_graph_write(&c.graph, (tm_graph_form)form, NULL, cut, capacity), length);
      assert_int_equal(strlen(cut), capacity - 1);
      assert_memory_equal(cut, whole, capacity - 1);
      free(cut);
    }
    free(whole);
  }
  case_end(&c);
}

static void what_is_written_is_read_back(void **state) {
  (void)state;
  graph_case c, back;
  case_begin(&c);
  case_begin(&back);
  build(&c);
  char *text = print(&c, TM_FORM_JSON);
  const tm_status status = tm_graph_read(&back.graph, text, strlen(text), &back.error);
  if (status != TM_OK) fail_msg("%s\n%s", back.error.text, text);
  char *again = print(&back, TM_FORM_JSON);
  assert_string_equal(again, text);
  assert_int_equal(back.graph.value_count, c.graph.value_count);
  assert_int_equal(back.graph.values[2].carry, 4);
  for (uint32_t v = 0; v < c.graph.value_count; v++)
    assert_memory_equal(&back.graph.values[v].operand, &c.graph.values[v].operand, sizeof(tm_operand));
  const tm_matmul_attributes *attributes = back.graph.nodes[0].attributes;
  assert_int_equal(attributes->transpose_b, 1);
  free(again);
  free(text);
  case_end(&back);
  case_end(&c);
}

static tm_operand strided(uint32_t rank, const uint64_t *dims, const int64_t *strides) {
  tm_operand operand = { .format = TM_FORMAT_F32, .rank = rank, .alignment = 1 };
  memcpy(operand.dims, dims, rank * sizeof *dims);
  memcpy(operand.strides_bytes, strides, rank * sizeof *strides);
  assert_int_equal(tm_operand_derive(&operand, NULL), TM_OK);
  return operand;
}

/* Strides that no element is reached by, of axes with one step or in a tensor without elements, are the same everywhere. */
static void strides_that_do_not_matter_are_read_back(void **state) {
  (void)state;
  static const struct {
    uint64_t dims[3];
    int64_t  strides[3];
  } rows[] = {
    { { 1, 4, 4 }, { 256, 16, 4 } }, { { 1, 4, 4 }, { -8, 16, 4 } }, { { 4, 1, 4 }, { 16, 999, 4 } }, { { 4, 4, 1 }, { 16, 4, -4 } },
    { { 2, 0, 3 }, { 1, 2, 3 } },    { { 1, 1, 1 }, { 7, 8, 9 } },   { { 1, 2, 2 }, { 4, 64, 4 } },   { { 2, 1, 2 }, { 4, 12, 32 } },
  };
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    graph_case c, back;
    case_begin(&c);
    case_begin(&back);
    const tm_operand layout = strided(3, rows[i].dims, rows[i].strides);
    (void)add_input(&c, "x", layout);
    (void)add_constant(&c, "w", layout);
    (void)add_view(&c, add_input(&c, "all", f32(1, DIMS(64))), layout, 16);
    char *text = print(&c, TM_FORM_JSON);
    assert_int_equal(tm_graph_read(&back.graph, text, strlen(text), &back.error), TM_OK);
    for (uint32_t v = 0; v < c.graph.value_count; v++)
      assert_memory_equal(&back.graph.values[v].operand, &c.graph.values[v].operand, sizeof(tm_operand));
    free(text);
    case_end(&back);
    case_end(&c);
  }
}

/* Every beginning of a file that is right is wrong, and nothing is left over. */
static void files_cut_anywhere_are_refused(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  build(&c);
  char *text = print(&c, TM_FORM_JSON);
  const uint64_t length = strlen(text);
  for (uint64_t cut = 0; cut + 2 < length; cut++) {
    graph_case part;
    case_begin(&part);
    char *piece = malloc(cut + 1);
    assert_non_null(piece);
    memcpy(piece, text, cut);
    says(&part, tm_graph_read(&part.graph, piece, cut, &part.error), TM_ERROR_CORRUPT, "line ");
    free(piece);
    case_end(&part);
  }
  free(text);
  case_end(&c);
}

/* ---- what only a file can say ---- */

#define HEAD "{\"tensormorph_graph\": 1, \"items\": [\n"
#define TAIL "\n]}\n"
#define X INPUT("f32", "4", "")
#define LAYOUT(dims) "{\"format\": \"f32\", \"dims\": [" dims "]}"
#define NODE(made, op, version, results)                                                                          \
  "{\"kind\": \"node\", \"values\": [" made "], \"op\": \"" op "\", \"version\": " version ", \"inputs\": [0], "  \
  "\"results\": [" results "]}"
#define NEG(made, read, name)                                                                                     \
  "{\"kind\": \"node\", \"values\": [" #made "], \"name\": \"" name "\", \"op\": \"neg\", \"version\": 1, "       \
  "\"inputs\": [" #read "], \"results\": [" LAYOUT("4") "]}"
#define INPUT(format, dims, more)                                                                                 \
  "{\"kind\": \"input\", \"value\": 0, \"name\": \"x\", \"format\": \"" format "\", \"dims\": [" dims "]" more "}"
#define VIEW(made, of, offset, dims)                                                                              \
  "{\"kind\": \"view\", \"value\": " made ", \"of\": " of ", \"offset\": " offset ", \"format\": \"f32\", "       \
  "\"dims\": [" dims "]}"

static const struct { const char *text; const char *words; } wrong[] = {
  /* order */
  { HEAD X ",\n" NEG(1, 2, "a") ",\n" NEG(2, 1, "b") TAIL,
    "line 3: a cycle: node 'a' uses value 2 of node 'b' (line 4), which in turn needs" },
  { HEAD X ",\n" NEG(1, 1, "a") TAIL, "line 3: a cycle: node 'a' uses value 1, which it makes itself" },
  { HEAD X ",\n" NEG(1, 2, "a") ",\n" NEG(2, 0, "b") TAIL,
    "line 3: node 'a' uses value 2 before it is made, by node 'b' (line 4); move" },
  { HEAD X ",\n" NEG(1, 3, "a") ",\n" NEG(2, 1, "b") ",\n" NEG(3, 2, "c") TAIL,
    "a cycle: node 'a' uses value 3 of node 'c' (line 5)" },
  { HEAD X ",\n" NEG(1, 7, "a") TAIL, "line 3: node 'a' uses value 7, which nothing in the file makes" },
  { HEAD "{\"kind\": \"output\", \"value\": 0, \"name\": \"y\"}" TAIL,
    "line 2: output 'y' uses value 0, which nothing in the file makes" },
  { HEAD X ",\n{\"kind\": \"output\", \"value\": 1, \"name\": \"y\"}" TAIL,
    "output 'y' uses value 1, which nothing in the file makes" },
  { HEAD VIEW("0", "0", "0", "4") TAIL, "a cycle: view 0 uses value 0, which it makes itself" },
  { HEAD X ",\n" NEG(2, 0, "a") TAIL, "line 3: node 'a': it makes value 2, expected 1" },
  { HEAD X ",\n" NEG(0, 0, "a") TAIL, "line 3: node 'a': it makes value 0, expected 1" },
  /* content */
  { HEAD X ",\n" X TAIL, "line 3: input 'x': it makes value 0" },
  { HEAD X ",\n{\"kind\": \"state\", \"value\": 1, \"name\": \"x\", \"format\": \"f32\", \"dims\": [4]}" TAIL, "names are unique" },
  { HEAD X ",\n" NODE("1", "frobnicate", "1", "") TAIL, "line 3: node (frobnicate): operation 'frobnicate' is not known" },
  { HEAD X ",\n" NODE("1", "neg", "9", LAYOUT("4")) TAIL, "neg version 9, expected 1" },
  { HEAD X ",\n" NODE("1", "neg", "0", LAYOUT("4")) TAIL, "version 0, expected 1" },
  { HEAD X ",\n" NODE("1", "neg", "1", LAYOUT("5")) TAIL, "result 0 is f32 [5], expected f32 [4] from its inputs" },
  { HEAD X ",\n" NODE("1,2", "neg", "1", "") TAIL, "0 results with 2 values" },
  { HEAD X ",\n" NODE("", "neg", "1", "") TAIL, "neg has 0 outputs, expected 1" },
  { HEAD X ",\n{\"kind\": \"carry\", \"value\": 0, \"state\": 0}" TAIL, "line 3: carry 0: input 'x' is no state" },
  { HEAD X ",\n{\"kind\": \"carry\", \"value\": 0, \"state\": 5}" TAIL, "the state to carry is value 5" },
  { HEAD X ",\n" VIEW("1", "0", "4", "4") TAIL, "a view stays inside" },
  { HEAD X ",\n" VIEW("1", "0", "0", "2") ",\n" VIEW("2", "1", "0", "2") TAIL,
    "line 4: view 2: it is of value 1, which is a view" },
  /* layouts */
  { HEAD INPUT("f32", "1,1,1,1,1,1,1,1,1", "") TAIL, "at most 8 extents" },
  { HEAD INPUT("f33", "1", "") TAIL, "found f33, expected the name of a format" },
  { HEAD INPUT("f32", "-1", "") TAIL, "found -1, expected an array" },
  { HEAD INPUT("f32", "18446744073709551615, 2", "") TAIL, "64 bits" },
  { HEAD INPUT("q8_0", "33", "") TAIL, "whole blocks of 32" },
  { HEAD INPUT("f32", "2", ", \"strides\": [1, 2]") TAIL, "2 strides for 1 axes" },
  { HEAD INPUT("f32", "2", ", \"strides\": [99999999999999999999]") TAIL, "strides in bytes" },
  { HEAD INPUT("f32", "2", ", \"strides\": [1.5]") TAIL, "strides in bytes" },
  { HEAD "{\"kind\": \"state\", \"value\": 0, \"name\": \"x\", \"format\": \"f32\", \"dims\": [2], \"strides\": [8]}" TAIL,
    "expected a dense one" },
  /* members */
  { HEAD "{\"kind\": \"input\", \"value\": 0, \"format\": \"f32\", \"dims\": [2]}" TAIL, "line 2: input without 'name'" },
  { HEAD "{\"kind\": \"output\", \"value\": 0, \"name\": \"y\", \"op\": \"neg\"}" TAIL, "line 2: output with 'op'" },
  { HEAD "{\"value\": 0, \"value\": 1}" TAIL, "found value, expected every member once" },
  { HEAD "{\"value\": 0}" TAIL, "line 2: an item without a kind" },
  { HEAD "{\"kind\": \"thing\"}" TAIL, "found thing, expected a kind" },
  { HEAD "{\"kind\": \"input\", \"colour\": 3}" TAIL, "found colour, expected a member that this library knows" },
  { HEAD "{\"kind\": \"input\", \"value\": 4294967295}" TAIL, "found 4294967295, expected a number of a value" },
  { HEAD "{\"kind\": \"input\", \"name\": \"a\\u0000b\"}" TAIL, "expected a name" },
  { HEAD "{\"kind\": \"input\", \"name\": \"a\\nb\"}" TAIL, "expected a name" },
  { HEAD "{\"kind\": \"node\", \"attributes\": \"0g\"}" TAIL, "two hexadecimal digits each" },
  { HEAD "{\"kind\": \"node\", \"attributes\": \"012\"}" TAIL, "two hexadecimal digits each" },
  { HEAD "{\"kind\": \"constant\", \"sha256\": \"00\"}" TAIL, "64 hexadecimal digits" },
  { HEAD "{\"kind\": \"node\", \"inputs\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}" TAIL, "at most 16 numbers" },
  { HEAD "7" TAIL, "found 7, expected an item" },
  /* the whole */
  { "", "line 1: no JSON: the text ends too early" },
  { "[]", "expected a graph file" },
  { "{\"items\": []}", "expected a graph file" },
  { "{\"tensormorph_graph\": 2, \"items\": []}", "version 2, expected 1" },
  { "{\"tensormorph_graph\": 1, \"nodes\": []}", "expected a graph file" },
  { "{\"tensormorph_graph\": 1, \"items\": [], \"more\": 1}", "expected the end of the graph" },
  { "{\"tensormorph_graph\": 1, \"items\": []} x", "no JSON" },
};

static void what_cannot_be_is_told(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    graph_case c;
    case_begin(&c);
    says(&c, tm_graph_read(&c.graph, wrong[i].text, strlen(wrong[i].text), &c.error), TM_ERROR_CORRUPT, wrong[i].words);
    case_end(&c);
  }
}

static void empty_graphs_are_graphs(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  char *text = print(&c, TM_FORM_JSON);
  assert_int_equal(tm_graph_read(&c.graph, text, strlen(text), &c.error), TM_OK);
  assert_int_equal(c.graph.value_count, 0);
  free(text);
  case_end(&c);
}

/* The lines of a long chain in the opposite order: told at once, not after a search from every item. */
static void long_wrong_orders_are_told_quickly(void **state) {
  (void)state;
  enum { COUNT = 20000 };
  graph_case c;
  case_begin(&c);
  char *text = malloc(COUNT * 200 + 200), *end = text;
  assert_non_null(text);
  end += sprintf(end, HEAD X);
  for (uint32_t i = 1; i <= COUNT; i++)
    end += sprintf(end, ",\n{\"kind\": \"node\", \"values\": [%u], \"op\": \"neg\", \"version\": 1, \"inputs\": [%u], "
                        "\"results\": [" LAYOUT("4") "]}", i, i == COUNT ? 1u : i + 1);
  end += sprintf(end, TAIL);
  says(&c, tm_graph_read(&c.graph, text, (uint64_t)(end - text), &c.error), TM_ERROR_CORRUPT,
       "line 3: a cycle: node (neg) uses value 2");
  free(text);
  case_end(&c);
}

/* What docs/graphs.md shows is a graph, to the byte. */
static void the_documented_file_is_one(void **state) {
  (void)state;
  static char page[1 << 16];
  FILE *file = fopen(TM_SOURCE_DIR "/docs/graphs.md", "rb");
  assert_non_null(file);
  page[fread(page, 1, sizeof page - 1, file)] = '\0';
  (void)fclose(file);
  char *begin = strstr(page, "```\n{");
  assert_non_null(begin);
  begin += 4;
  char *end = strstr(begin, "```");
  assert_non_null(end);
  *end = '\0';
  graph_case c;
  case_begin(&c);
  if (tm_graph_read(&c.graph, begin, strlen(begin), &c.error) != TM_OK) fail_msg("%s", c.error.text);
  char *text = print(&c, TM_FORM_JSON);
  assert_string_equal(text, begin);
  free(text);
  case_end(&c);
}

static void large_graphs_are_read_back(void **state) {
  (void)state;
  enum { NODES = 100000 };
  graph_case c, back;
  case_begin(&c);
  case_begin(&back);
  uint32_t value = add_input(&c, "x", f32(1, DIMS(16)));
  for (uint32_t i = 0; i < NODES; i++) value = add_unary(&c, TM_OP_NEG, value);
  add_output(&c, "y", value);
  clock_t begin = clock();
  char *text = print(&c, TM_FORM_JSON);
  const double written = (double)(clock() - begin) / CLOCKS_PER_SEC;
  begin = clock();
  assert_int_equal(tm_graph_read(&back.graph, text, strlen(text), &back.error), TM_OK);
  const double read = (double)(clock() - begin) / CLOCKS_PER_SEC;
  print_message("%u nodes: written in %.3f s, read in %.3f s of processor time\n", (unsigned)NODES, written, read);
  assert_int_equal(back.graph.node_count, NODES);
  assert_true(written < 20 && read < 20);       /* anything quadratic takes minutes */
  free(text);
  case_end(&back);
  case_end(&c);
}

static void no_memory_is_told_and_nothing_leaks(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  build(&c);
  char *text = print(&c, TM_FORM_JSON);
  uint32_t refused = 0;
  for (uint64_t limit = 1; limit < 40000; limit += 97) {
    graph_case part;
    case_begin(&part);
    part.memory.limit_bytes = limit;
    const tm_status status = tm_graph_read(&part.graph, text, strlen(text), &part.error);
    if (status != TM_OK) says(&part, status, TM_ERROR_NO_MEMORY, "no memory");
    refused += status != TM_OK;
    case_end(&part);
  }
  assert_true(refused > 10 && refused < 400);
  free(text);
  case_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_is_for_people),
    cmocka_unit_test(dot_names_every_edge),
    cmocka_unit_test(texts_are_cut_where_there_is_no_room),
    cmocka_unit_test(what_is_written_is_read_back),
    cmocka_unit_test(strides_that_do_not_matter_are_read_back),
    cmocka_unit_test(files_cut_anywhere_are_refused),
    cmocka_unit_test(what_cannot_be_is_told),
    cmocka_unit_test(empty_graphs_are_graphs),
    cmocka_unit_test(long_wrong_orders_are_told_quickly),
    cmocka_unit_test(the_documented_file_is_one),
    cmocka_unit_test(large_graphs_are_read_back),
    cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
