/* SPDX-License-Identifier: Apache-2.0 */
#include "layer_grid.h"

#include <stdio.h>
#include <string.h>

#include "layer_name.h"
#include "layer_rows.h"
#include "printable_text.h"
#include "quantity.h"

#define MOST_KINDS 100u         /* lines */
#define MOST_OUTSIDE 20u        /* of them outside of layers, where every tensor may be a kind of its own */
#define LEAST_LABEL 16u
#define MOST_LABEL 60u
#define MOST_MARKS 512u         /* in a line without limit */
#define TICK_MARKS 10u

typedef struct mark {
  char        sign;
  const char *paint;
  const char *meaning;
} mark;

enum { SAME, TINY, SMALL, LARGE, GREAT, REMOVED, ADDED, ODD, MARK_COUNT };

static const mark marks[MARK_COUNT] = {
  [SAME] = { '.', "\x1b[2m", "the same" },
  [TINY] = { '-', "\x1b[36m", "rel_l2 below 0.001" },
  [SMALL] = { '+', "\x1b[32m", "below 0.01" },
  [LARGE] = { '*', "\x1b[33m", "below 0.1" },
  [GREAT] = { '#', "\x1b[1;31m", "0.1 or more" },
  [REMOVED] = { '<', "\x1b[31m", "in A only" },
  [ADDED] = { '>', "\x1b[32m", "in B only" },
  [ODD] = { '!', "\x1b[35m", "different without figures" },
};

typedef struct grid {
  const tm_layer_groups *groups;
  const tm_table_look   *look;
  tm_output_stream      *stream;
  size_t   layer_count;         /* without what is outside of layers */
  size_t   layers_per_mark;
  size_t   prefix_length;       /* that all kinds of layers share */
  uint32_t label_width;
  uint32_t used;                /* bit set by mark: needs a line in the legend */
} grid;

/* ------------------------------------------------------------------------------------------------------- layout ---- */

static bool is_in_layers(const tm_layer_kind *kind) { return kind->prefix_length != 0; }

/* What is the same in all of them says nothing. */
static void find_prefix(grid *g) {
  const tm_layer_kind *first = NULL;
  for (size_t i = 0; i < g->groups->kind_count; i++) {
    const tm_layer_kind *kind = &g->groups->kinds[i];
    if (!is_in_layers(kind)) continue;
    if (first == NULL) first = kind;
    if (kind->prefix_length != first->prefix_length || memcmp(kind->text, first->text, first->prefix_length) != 0 ||
        kind->length == kind->prefix_length) {
      g->prefix_length = 0;
      return;
    }
    g->prefix_length = first->prefix_length;
  }
}

static void label_text(const grid *g, const tm_layer_kind *kind, char *out, size_t capacity) {
  const size_t skipped = is_in_layers(kind) ? g->prefix_length : 0;
  tm_printable_escape(kind->text + skipped, kind->length - skipped, out, capacity);
}

/* The prefix, which stands in the heading; "" if there is none. */
static void prefix_text(const grid *g, char *out, size_t capacity) {
  out[0] = '\0';
  for (size_t i = 0; i < g->groups->kind_count && g->prefix_length != 0 && out[0] == '\0'; i++)
    if (is_in_layers(&g->groups->kinds[i])) tm_printable_escape(g->groups->kinds[i].text, g->prefix_length, out, capacity);
}

static void fit(grid *g, bool with_same) {
  char label[256];
  prefix_text(g, label, sizeof label);
  uint32_t widest = (uint32_t)tm_printable_width(label, strlen(label));
  for (size_t i = 0; i < g->groups->kind_count; i++) {
    const tm_layer_kind *kind = &g->groups->kinds[i];
    if (!with_same && !tm_layer_figures_differ(&kind->figures)) continue;
    label_text(g, kind, label, sizeof label);
    const uint32_t width = (uint32_t)tm_printable_width(label, strlen(label));
    if (width > widest) widest = width;
  }
  const size_t width = g->look->width, label_room = width == 0 ? MOST_LABEL : width * 3 / 7;
  g->label_width = widest < label_room ? widest : (uint32_t)(label_room > LEAST_LABEL ? label_room : LEAST_LABEL);
  const size_t taken = g->label_width + 2u;
  const size_t room = width == 0 ? MOST_MARKS : width > taken ? width - taken : 1;
  g->layers_per_mark = g->layer_count <= room ? 1 : (g->layer_count + room - 1) / room;
}

/* -------------------------------------------------------------------------------------------------------- marks ---- */

static uint32_t mark_of(const tm_layer_figures *figures) {
  if (!tm_layer_figures_differ(figures)) return SAME;
  if (figures->differing_count == 0 && figures->added_count == 0) return REMOVED;
  if (figures->differing_count == 0 && figures->removed_count == 0) return ADDED;
  if (figures->differing_count == figures->unmeasured_count) return ODD;
  const tm_cell relative = tm_layer_figures_rel_l2(figures);
  if (!relative.defined) return figures->distance_squared > 0 ? GREAT : TINY;
  if (relative.number < 0.001) return TINY;
  if (relative.number < 0.01) return SMALL;
  return relative.number < 0.1 ? LARGE : GREAT;
}

static void print_mark(grid *g, uint32_t index) {
  const char sign[2] = { marks[index].sign, '\0' };
  g->used |= 1u << index;
  if (g->look->color) tm_output_text(g->stream, marks[index].paint);
  tm_output_text(g->stream, sign);
  if (g->look->color) tm_output_text(g->stream, "\x1b[0m");
}

/* The cells of a kind lie together, in order of layers. */
static size_t print_marks(grid *g, size_t cell, size_t kind) {
  const tm_layer_cell *cells = g->groups->cells;
  size_t               position = 0;
  while (cell < g->groups->cell_count && cells[cell].kind == kind) {
    const size_t     place = cells[cell].layer / g->layers_per_mark;
    tm_layer_figures sum = { 0 };
    tm_output_repeat(g->stream, ' ', place - position);
    for (; cell < g->groups->cell_count && cells[cell].kind == kind && cells[cell].layer / g->layers_per_mark == place; cell++)
      tm_layer_figures_add(&sum, &cells[cell].figures);
    print_mark(g, mark_of(&sum));
    position = place + 1;
  }
  return cell;
}

static size_t skip_kind(const grid *g, size_t cell, size_t kind) {
  while (cell < g->groups->cell_count && g->groups->cells[cell].kind == kind) cell++;
  return cell;
}

static void print_label(const grid *g, const char *text) {
  tm_output_text(g->stream, text);
  tm_output_repeat(g->stream, ' ', g->label_width + 2u - tm_printable_width(text, strlen(text)));
}

static size_t print_kind(grid *g, size_t cell, size_t index) {
  const tm_layer_kind *kind = &g->groups->kinds[index];
  char                 label[256];
  label_text(g, kind, label, sizeof label);
  tm_printable_shorten(label, g->label_width);
  print_label(g, label);
  if (is_in_layers(kind)) {
    cell = print_marks(g, cell, index);
  } else {
    print_mark(g, mark_of(&kind->figures));
    cell = skip_kind(g, cell, index);
  }
  tm_output_char(g->stream, '\n');
  return cell;
}

/* --------------------------------------------------------------------------------------------- what is around it ---- */

static void print_heading(grid *g) {
  char         label[256];
  const size_t mark_count = (g->layer_count + g->layers_per_mark - 1) / g->layers_per_mark;
  size_t       position = 0;
  prefix_text(g, label, sizeof label);
  tm_printable_shorten(label, g->label_width);
  print_label(g, label);
  for (size_t place = 0; place < mark_count; place += TICK_MARKS) {
    char            number[24];
    const tm_layer *layer = &g->groups->layers[place * g->layers_per_mark];
    const int       length = snprintf(number, sizeof number, "%llu", (unsigned long long)layer->number);
    if (g->look->width != 0 && g->label_width + 2u + place + (size_t)length > g->look->width) break;
    tm_output_repeat(g->stream, ' ', place - position);
    tm_output_text(g->stream, number);
    position = place + (size_t)length;
  }
  tm_output_char(g->stream, '\n');
}

static void print_legend(const grid *g) {
  char text[512] = "";
  for (uint32_t i = 0; i < MARK_COUNT; i++) {
    const size_t used = strlen(text);
    if ((g->used >> i & 1u) == 0) continue;
    snprintf(text + used, sizeof text - used, "%s%c %s", used > 0 ? ", " : "", marks[i].sign, marks[i].meaning);
  }
  if (g->layers_per_mark > 1) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "; each mark stands for %zu layers", g->layers_per_mark);
  }
  tm_printable_wrap(g->stream, text, 0, g->look->width);
}

static void print_hidden(const grid *g, size_t same, size_t cut) {
  tm_quantity count;
  if (same > 0)
    tm_output_format(g->stream, "%s kind%s the same everywhere; --all shows %s\n", tm_quantity_count(same, &count),
                     same == 1 ? " is" : "s are", same == 1 ? "it" : "them");
  if (cut > 0) tm_output_format(g->stream, "and %s more kinds; --by kind --json lists all\n", tm_quantity_count(cut, &count));
}

bool tm_layer_grid_print(const tm_layer_groups *groups, bool with_same, tm_table_look look, tm_output_stream *stream) {
  grid   g = { .groups = groups, .look = &look, .stream = stream, .layer_count = groups->layer_count };
  size_t cell = 0, same = 0, cut = 0, shown[2] = { 0, 0 };
  if (g.layer_count > 0 && groups->layers[g.layer_count - 1].number == TM_NO_LAYER) g.layer_count--;
  if (g.layer_count == 0) return false;
  find_prefix(&g);
  fit(&g, with_same);
  for (size_t i = 0; i < groups->kind_count && stream->error == 0; i++) {
    const bool is_same = !with_same && !tm_layer_figures_differ(&groups->kinds[i].figures);
    const bool is_inside = is_in_layers(&groups->kinds[i]);
    const bool has_room = shown[is_inside] < (is_inside ? MOST_KINDS : MOST_OUTSIDE);
    same += is_same;
    cut += !is_same && !has_room;
    if (!is_same && has_room) {
      if (shown[0] + shown[1] == 0) print_heading(&g);
      shown[is_inside]++;
      cell = print_kind(&g, cell, i);
    } else {
      cell = skip_kind(&g, cell, i);
    }
  }
  if (g.used != 0) print_legend(&g);
  print_hidden(&g, same, cut);
  return true;
}
