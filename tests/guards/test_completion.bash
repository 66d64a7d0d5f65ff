#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_completion.bash SOURCE: what bash offers for half a command line.
set -euo pipefail
# shellcheck source=../../completions/tensormorph.bash
source "$1/completions/tensormorph.bash"
cd "$1"
failed=0

# expect "what is offered" WORD...: the last word is being typed.
expect() {
  local want=$1
  shift
  COMP_WORDS=(tensormorph "$@") COMP_CWORD=$# COMPREPLY=()
  _tensormorph
  [[ ${COMPREPLY[*]} == "$want" ]] || { echo "tensormorph $*: offered '${COMPREPLY[*]}', expected '$want'"; failed=1; }
}

expect "stats" st
expect "backends" --json ba
expect "--no-device --no-color" stats --no
expect "N0 N1 N2 N3" --accept N
expect "abs_max" stats --sort ab
expect "README.md" stats READ
expect "--max-memory --max-header" inspect --max
expect "diff" di
expect "README.md" diff LICENSE READ
expect "layer kind" diff --by ""
expect "rel_l2" diff --sort rel
expect "--exclude --exact" diff --ex
expect "--shape" explain matmul --sh
expect "check" plugin ch
expect "--formats --folder" plugin check --fo
expect "README.md" plugin check READ
expect "export" profile ex
expect "README.md" profile import READ
expect "--set --seconds" calibrate --se
exit "$failed"
