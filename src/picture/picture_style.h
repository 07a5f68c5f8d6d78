#pragma once

/* Style sheets of pictures and pages: colours for light and dark, which differ in brightness as
 * well, so that they can be told apart without colour vision. Printing is always light. */

extern const char picture_colours[];  /* variables */
extern const char picture_rules[];    /* elements of pictures */
extern const char picture_patterns[]; /* <defs>: once in a document */
extern const char page_rules[];	      /* elements of pages */
