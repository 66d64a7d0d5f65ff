# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of the tensormorph command for bash.
_tensormorph() {
  local word previous command="" item
  word=${COMP_WORDS[COMP_CWORD]}
  previous=${COMP_WORDS[COMP_CWORD - 1]}
  for item in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $item in
      backends | ops | inspect | stats | explain | bench) command=$item ;;
    esac
  done

  local options="--json --device --no-device --accept --threads --plugin --help --version"
  case $command in
    backends) options+=" --options" ;;
    inspect) options+=" --max-header" ;;
    stats) options+=" --tensor --exclude --sort --top --csv --reproducible --require-backend --fail-on-nonfinite" ;;
    explain | bench) options+=" --dtype --shape" ;;
  esac

  local words=""
  case $previous in
    --accept) words="N0 N1 N2 N3" ;;
    --sort) words="file name dtype shape count nan pos_inf neg_inf zero subnormal min max abs_max mean std l2" ;;
    --device | --no-device | --require-backend)
      words=$(tensormorph backends --json 2>/dev/null | sed -n 's/.*"name": *"\([^"]*\)".*/\1/p') ;;
    --plugin)
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return ;;
    --threads | --top | --tensor | --exclude | --dtype | --shape | --max-header) return ;;
    explain | bench)
      words=$(tensormorph ops --json 2>/dev/null | sed -n 's/.*"name": *"\([^"]*\)".*/\1/p') ;;
  esac
  if [[ -z $words ]]; then
    if [[ -z $command ]]; then
      words="backends ops inspect stats explain bench $options"
    elif [[ $word == -* || $command != inspect && $command != stats ]]; then
      words=$options
    else
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
    fi
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _tensormorph tensormorph
