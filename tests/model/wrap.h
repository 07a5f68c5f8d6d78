#pragma once

/* Declares the functions of the linker's --wrap=name: __wrap_name is called in place of name,
 * __real_name is name. Both have the type of name itself, so that a prototype that changed does not
 * compile here. */
#define WRAP(name) __typeof__(name) __wrap_##name, __real_##name
