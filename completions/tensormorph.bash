# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of the tensormorph command for bash.

# The names of backends, devices or operations, as the command lists them.
_tensormorph_names() {
  tensormorph "$1" --json 2>/dev/null | sed -n 's/^ *"name": "\([^"]*\)".*/\1/p' | sort -u
}

_tensormorph_options() {
  local rows="--sort --top --columns --wide --csv" names="--tensor --exclude"
  local operation="--dtype --shape --output-dtype --attr --transpose-a --transpose-b --axis --constant"
  case $1 in
    backends) echo "--options" ;;
    inspect) echo "$names $rows --metadata-only --max-header" ;;
    stats) echo "$names $rows --reproducible --require-backend --fail-on-nonfinite --max-header" ;;
    check) echo "$names --max-header" ;;
    diff) echo "$names $rows --all --by --exact --tolerance --names-only --reproducible --max-header" ;;
    merge)
      echo "--output --linear --slerp --task --ties --dare --base --weight --density --t --scale --dtype --seed --normalize" \
        "--no-normalize --rescale --no-rescale --missing --rows --other --recipe --shard-size --dry-run --wide --force --top" \
        "--max-header" ;;
    explain) echo "$operation --graph --node --repeats --wide" ;;
    bench) echo "$operation --repeat --min-time" ;;
    profile) echo "--force" ;;
    calibrate) echo "--seconds" ;;
    plugin) echo "--quick --full --budget --seed --cases --only --leave-out --formats --case --deadline --no-isolate --folder --queue" ;;
  esac
}

_tensormorph_columns() {
  case $1 in
    inspect) echo "name dtype shape count bytes offset file type state" ;;
    diff) echo "verdict name other_name paired dtype other_dtype shape other_shape count equal changed nonfinite max_abs max_rel rel_l2 cosine distance norm other_norm bytes other_bytes layer kind tensors same differing removed added" ;;
    *) echo "file name dtype shape count nan pos_inf neg_inf zero subnormal min max abs_max mean std l2" ;;
  esac
}

_tensormorph() {
  local word previous command="" item words=""
  local commands="backends ops inspect stats check diff merge explain bench plugin profile calibrate help"
  word=${COMP_WORDS[COMP_CWORD]}
  previous=${COMP_WORDS[COMP_CWORD - 1]}
  for item in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $item in
      backends | ops | inspect | stats | check | diff | merge | explain | bench | plugin | profile | calibrate | help)
        command=$item
        break ;;
    esac
  done

  local options="--device --no-device --accept --threads --plugin --max-memory --patience --strict --set --json --color --no-color --quiet --help"
  if [[ -z $command ]]; then
    options+=" --version"
  else
    options+=" $(_tensormorph_options "$command")"
  fi

  case $previous in
    --accept) words="N0 N1 N2 N3" ;;
    --by) words="layer kind" ;;
    --sort) words=$(_tensormorph_columns "$command") ;;
    --device | --no-device | --require-backend) words=$(_tensormorph_names backends) ;;
    --missing) words="fail available copy skip" ;;
    --rows) words="fail common lead longest" ;;
    --other) words="fail copy skip" ;;
    --weight | --density | --t | --scale | --shard-size) return ;;
    --plugin | --folder | --graph | --output | -o | --base | --recipe)
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return ;;
    --threads | --max-memory | --patience | --set | --top | --columns | --tensor | --exclude | --max-header | --tolerance) return ;;
    --dtype | --shape | --output-dtype | --attr | --axis | --constant | --repeat | --min-time | --node | --repeats) return ;;
    ops | explain | bench) [[ $word == -* ]] || words=$(_tensormorph_names ops) ;;
    --only) words=$(_tensormorph_names ops) ;;
    --seconds | --budget | --seed | --cases | --leave-out | --formats | --case | --deadline) return ;;
    check | merge)
      if [[ $word != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
      fi ;;
    plugin) [[ $word == -* ]] || words="check new list forgive" ;;
    profile) [[ $word == -* ]] || words="show reset export import" ;;
    reset) [[ $word == -* ]] || words=$(_tensormorph_names backends) ;;
    export | import)
      if [[ $word != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
      fi ;;
    help) words=$commands ;;
  esac
  if [[ -z $words ]]; then
    if [[ -z $command ]]; then
      words="$commands $options"
    elif [[ $word == -* || $command != inspect && $command != stats && $command != check && $command != diff && $command != merge ]]; then
      words=$options
    else
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
    fi
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _tensormorph tensormorph
