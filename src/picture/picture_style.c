#include "picture_style.h"

const char picture_colours[] =
	":root{--bg:#fff;--fg:#1f2328;--mute:#59636e;--line:#c8d1da;--box:#f6f8fa;--m:#f9dfae;"
	"--mi:#8a5a00;--s:#c3e9da;--si:#0b6e4f;--u:#0b5cad;--ui:#fff;--fi:#0b5cad;--n:#eceff2;"
	"--ni:#6e7781;--x:#b42318;--ok:#0b6e4f;--warn:#855600;--bad:#b42318;--po:.4}\n"
	"@media screen and (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;"
	"--mute:#9da7b3;--line:#3d444d;--box:#151b23;--m:#463611;--mi:#e8bd62;--s:#113a2d;"
	"--si:#6fdcb2;--u:#58a6ff;--ui:#05121f;--fi:#79b8ff;--n:#21262d;--ni:#8b949e;--x:#ff9d91;"
	"--ok:#6fdcb2;--warn:#e8bd62;--bad:#ff9d91;--po:.28}}\n";

const char picture_rules[] =
	"svg text{fill:var(--fg);font:12px system-ui,\"DejaVu Sans\",Arial,sans-serif}\n"
	"svg .mute{fill:var(--mute)}svg .h{font-size:15px;font-weight:600}svg .b{font-weight:600}\n"
	"svg .bg{fill:var(--bg)}svg .box{fill:var(--box);stroke:var(--line)}\n"
	"svg .core{fill:none;stroke:var(--line)}svg .e{stroke-dasharray:3 2}\n"
	"svg .cpu text{text-anchor:middle}svg .cpu .k{font-size:10px;font-weight:600}\n"
	"svg .cpu rect{stroke-width:1.5}\n"
	".m rect{fill:url(#hatch);stroke:var(--mi)}.s rect{fill:url(#dots);stroke:var(--si)}\n"
	".u rect{fill:var(--u);stroke:var(--u)}svg .u text{fill:var(--ui)}\n"
	".f rect{fill:var(--bg);stroke:var(--fi)}\n"
	".n rect{fill:var(--n);stroke:var(--ni);stroke-dasharray:2 2}\n"
	"svg .x{fill:var(--x)}svg .cpu .xo{fill:none;stroke:var(--x);stroke-width:2.5;"
	"stroke-dasharray:none}\n"
	".pm{fill:var(--m)}.ps{fill:var(--s)}.lm{stroke:var(--mi);stroke-opacity:var(--po)}\n"
	".ds{fill:var(--si);fill-opacity:var(--po)}\n";

const char picture_patterns[] =
	"<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect class=\"pm\" width=\"6\" height=\"6\"/><path "
	"class=\"lm\" d=\"M0 0V6\" stroke-width=\"2\"/></pattern><pattern id=\"dots\" width=\"7\" "
	"height=\"7\" patternUnits=\"userSpaceOnUse\"><rect class=\"ps\" width=\"7\" "
	"height=\"7\"/><circle class=\"ds\" cx=\"3.5\" cy=\"3.5\" r=\"1.1\"/></pattern></defs>\n";

const char page_rules[] =
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;max-width:1200px;padding:16px;background:var(--bg);color:var(--fg);"
	"font:15px/1.5 system-ui,\"DejaVu Sans\",Arial,sans-serif;overflow-wrap:anywhere}\n"
	"h1{font-size:1.6em;line-height:1.25;margin:.2em 0}h2{font-size:1.25em;margin:1.6em 0 .4em;"
	"border-bottom:1px solid var(--line);padding-bottom:.2em}h3{font-size:1.05em;"
	"margin:1.2em 0 .3em}\n"
	"p{margin:.4em 0}.mute{color:var(--mute)}\n"
	".panels{display:flex;flex-wrap:wrap;gap:12px;margin:.5em 0;padding:0;overflow-x:auto}\n"
	/* Numbers of less than 9 pixels cannot be read: a narrow window scrolls instead. */
	".panels svg{flex:1 1 440px;min-width:440px;max-width:588px;height:auto;display:block}\n"
	"figure{margin:.5em 0}figcaption{font-weight:600}\n"
	".legend{list-style:none;padding:0;margin:.5em 0;columns:2 320px;column-gap:24px}\n"
	".legend li{break-inside:avoid;display:flex;gap:8px;align-items:baseline;padding:1px 0}\n"
	".legend svg{flex:none;width:24px;height:22px;align-self:center}\n"
	".legend svg text{font-size:11px;font-weight:600;text-anchor:middle}\n"
	".table{overflow-x:auto;margin:.5em 0}\n"
	"table{border-collapse:collapse;width:100%;font-size:14px}\n"
	"caption{text-align:left;font-weight:600;padding:.2em 0}\n"
	"th,td{text-align:left;vertical-align:top;padding:4px 10px 4px 0;"
	"border-bottom:1px solid var(--line);overflow-wrap:anywhere;min-width:4.5em}\n"
	"th{color:var(--mute);font-weight:600}th,.w{white-space:nowrap}\n"
	".ok,.bad,.warn{font-weight:600}.ok{color:var(--ok)}.bad{color:var(--bad)}"
	".warn{color:var(--warn)}\n"
	"pre{background:var(--box);border:1px solid var(--line);border-radius:6px;padding:10px;"
	"overflow-x:auto;font:12.5px/1.45 ui-monospace,\"DejaVu Sans Mono\",monospace}\n"
	"summary{cursor:pointer;padding:2px 0}:focus-visible{outline:2px solid var(--fi);"
	"outline-offset:2px}\n"
	/* Columns that scroll instead of words that are cut to letters. */
	"@media screen and (max-width:600px){td{min-width:9em}}\n"
	"@media print{body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}"
	"figure,tr,.panels svg{break-inside:avoid}.panels svg{flex-basis:46%;min-width:0}"
	"*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n";
