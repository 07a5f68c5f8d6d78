#!/usr/bin/env bash
# What works today, on one screen.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build:$PATH

show() {
    echo "\$ $1"
    bash -c "$1"
    echo
}

show "pinfold cpuset '0-7,16-23 - 2,3'"
show "pinfold cpuset --count '0-7,16-23 - 2,3'"
show "pinfold cpuset --hex '0-7,16-23 - 2,3'"
show "pinfold cpuset -o json '0-63 & 32-95'"
