/* The program's entry point on x86-64. The dynamic linker jumps there indirectly, so with
 * control-flow enforcement it has to start with endbr64, which _start of the C library does not in
 * Debian 12. */

#ifdef __x86_64__
__asm__(".text\n"
	".globl cet_entry\n"
	".type cet_entry, @function\n"
	"cet_entry:\n"
	"	endbr64\n"
	"	jmp _start\n"
	".size cet_entry, . - cet_entry\n");
#else
typedef int entry_is_not_needed; /* an empty file is no C */
#endif
