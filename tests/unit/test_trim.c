/* Which mappings may be returned to the kernel. */

#include "base/trim.h"
#include "test.h"

TEST(only_unmodified_private_file_mappings_are_returned)
{
	static const char smaps[] =
		"5500-5600 r--p 00000000 fd:01 77                 /usr/bin/pinfold\n"
		"Rss:                 100 kB\nAnonymous:             0 kB\n"
		"5600-5700 r-xp 00100000 fd:01 77                 /usr/bin/pinfold\n"
		"Anonymous:             0 kB\n"
		"5700-5800 r--p 00200000 fd:01 77                 /usr/bin/pinfold\n"
		"Anonymous:             8 kB\n" /* relocations */
		"5800-5900 rw-p 00300000 fd:01 77                 /usr/bin/pinfold\n"
		"Anonymous:             0 kB\n"
		"5900-5a00 r--s 00000000 fd:01 78                 /usr/share/shared\n"
		"Anonymous:             0 kB\n"
		"6000-7000 rw-p 00000000 00:00 0                  [heap]\n"
		"Anonymous:           500 kB\n"
		"7000-8000 r-xp 00000000 00:00 0                  [vdso]\n"
		"Anonymous:             0 kB\n";
	struct trim_mapping got[8];

	CHECK_UINT(trim_parse(str_from(smaps), got, 8), 2);
	CHECK_UINT(got[0].start, 0x5500);
	CHECK_UINT(got[1].start, 0x5600);
	CHECK_UINT(got[1].end, 0x5700);
	CHECK_UINT(trim_parse(str_from(smaps), got, 1), 1);
	CHECK_UINT(trim_parse(STR("nonsense\n5500-"), got, 8), 0);
	trim_memory(); /* the process keeps running */
	CHECK_UINT(trim_parse(STR(""), got, 8), 0);
}
