#pragma once

/* What the files of the shown state share: owned texts, nodes, and the CPUs that a NodePartition
 * assigns. */

#include "shown_state.h"

void *shown_allocate(size_t size); /* zeroed */
struct str shown_own(struct str text);
void shown_disown(struct str *text);

/* True when the text is another one. */
bool shown_replace(struct str *text, struct str by);

struct shown_node *shown_node_get(struct shown_state *s, struct str name);
void shown_node_touch(struct shown_state *s, struct shown_node *n);
void shown_node_release(struct shown_state *s, struct shown_node *n);
void shown_count_version(struct shown_state *s, struct str version, bool is_new);

/* Gives the containers with exclusive CPUs of a node those that its NodePartition reports. */
void shown_pods_assign(struct shown_state *s, struct shown_node *n);
