#!/usr/bin/env bash
# Pictures and pages in a real browser, Debian's Chromium: as HTML they have the same elements as they have as XML, also with names
# that try to add markup, no script runs, and they look different in light and dark and in a narrow window. IMAGES=1 also
# writes the screenshots of the documentation, docs/images/*.png.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh
tests/e2e/components/host-packages chromium fonts-dejavu-core python3

pinfold=${PINFOLD:-$PWD/build/pinfold}
bundle=$PWD/tests/golden/bundle-saved
dir=$(mktemp -d /tmp/pinfold-pictures-XXXXXX)
trap 'rm -rf "$dir"' EXIT

browse() { # OPTION... FILE
    local file=${*: -1}
    timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --user-data-dir="$dir/profile" "${@:1:$#-1}" "file://$dir/$file" 2>/dev/null
}
shot() { # FILE IMAGE SIZE [OPTION...]
    browse --window-size="$3" --screenshot="$dir/$2" "${@:4}" "$1" >/dev/null
    [ -s "$dir/$2" ]
}
dark=--blink-settings=preferredColorScheme=0

make_pages() {
    "$pinfold" map --bundle "$bundle" -o svg >"$dir/map.svg"
    "$pinfold" map --bundle "$bundle" -o html >"$dir/map.html"
    "$pinfold" report --bundle "$bundle" -q "$dir/report.html" || [ $? = 1 ]
    "$pinfold" plan --target host --bundle "$bundle" -f docs/images/plan.yaml -o html >"$dir/plan.html" 2>/dev/null || [ $? = 1 ]
    # A page whose every name is a script that would change the title.
    cp -r "$bundle" "$dir/hostile"
    find "$dir/hostile" -name '*.json' ! -name index.json ! -name topology.json ! -name host.json -exec sed -i -E \
        's#"(vdu-0|l1|ran|chronyd)"#"\1</title><script>document.title=1</script><img src=x onerror=document.title=1>"#g' {} +
    "$pinfold" report --bundle "$dir/hostile" -q "$dir/hostile.html" || [ $? = 1 ]
}

# Counts the elements by name, as XML or as the browser's document: both parsers must agree.
elements() {
    python3 - "$1" <<'END'
import collections, html.parser, sys

class Count(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = collections.Counter()

    def handle_starttag(self, tag, attrs):
        self.names[tag.lower()] += 1
        assert not any(key.startswith("on") for key, _ in attrs), attrs

count = Count()
count.feed(open(sys.argv[1], encoding="utf-8").read())
print(sorted(count.names.items()))
END
}
same_elements() { # FILE
    browse --dump-dom "$1" >"$dir/dom.html" && [ "$(elements "$dir/$1")" = "$(elements "$dir/dom.html")" ]
}
no_script() {
    browse --dump-dom --virtual-time-budget=2000 hostile.html >"$dir/dom.html"
    grep -q '<title>Report: node worker-0, cluster</title>' "$dir/dom.html" && ! grep -qi -e '<script' -e '<img' "$dir/dom.html"
}
differ() { ! cmp -s "$dir/$1" "$dir/$2"; }
is_printed() { browse --print-to-pdf="$dir/report.pdf" report.html >/dev/null && head -c 4 "$dir/report.pdf" | grep -q %PDF; }

ok "pictures and pages are made" make_pages
for page in map report plan hostile; do
    ok "$page.html has the same elements in the browser" same_elements $page.html
done
ok "no name runs a script" no_script
ok "a page in light" shot report.html report-light.png 1280,2900
ok "a page in dark" shot report.html report-dark.png 1280,2900 "$dark"
ok "dark is not light" differ report-light.png report-dark.png
ok "a page can be printed" is_printed
if [ -n "${IMAGES:-}" ]; then
    shot report.html report.png 1100,1000 && cp "$dir/report.png" docs/images/report.png
    shot map.html map-dark.png 1100,560 $dark && cp "$dir/map-dark.png" docs/images/map-dark.png
fi
tap_end
