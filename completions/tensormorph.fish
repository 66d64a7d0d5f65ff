# SPDX-License-Identifier: Apache-2.0
# Completion of the tensormorph command for fish.
set -l commands backends ops inspect stats explain bench

complete -c tensormorph -f
complete -c tensormorph -n "not __fish_seen_subcommand_from $commands" -a backends -d "backends and their devices"
complete -c tensormorph -n "not __fish_seen_subcommand_from $commands" -a ops -d "operations, and what each device makes of them"
complete -c tensormorph -n "not __fish_seen_subcommand_from $commands" -a inspect -d "metadata and tensors of a checkpoint"
complete -c tensormorph -n "not __fish_seen_subcommand_from $commands" -a stats -d "exact statistics of every tensor"
complete -c tensormorph -n "not __fish_seen_subcommand_from $commands" -a explain -d "where an operation would run, and why"
complete -c tensormorph -n "not __fish_seen_subcommand_from $commands" -a bench -d "time an operation on a device"

complete -c tensormorph -l json -d "print one JSON document"
complete -c tensormorph -l device -x -d "use only this device"
complete -c tensormorph -l no-device -x -d "never use this device"
complete -c tensormorph -l accept -x -a "N0 N1 N2 N3" -d "weakest numerics class to accept"
complete -c tensormorph -l threads -x -d "threads of the pool"
complete -c tensormorph -l plugin -r -F -d "also load this plugin"
complete -c tensormorph -l help -d help
complete -c tensormorph -l version -d version

complete -c tensormorph -n "__fish_seen_subcommand_from backends" -l options -d "list the options of backends"
complete -c tensormorph -n "__fish_seen_subcommand_from inspect" -l max-header -x -d "largest header to accept"
complete -c tensormorph -n "__fish_seen_subcommand_from inspect stats" -F
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l tensor -x -d "only tensors that match"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l exclude -x -d "leave out tensors that match"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l sort -x -d "order by a column" \
  -a "file name dtype shape count nan pos_inf neg_inf zero subnormal min max abs_max mean std l2"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l top -x -d "only the first rows"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l csv -d "print comma-separated values"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l reproducible -d "bit-equal results only"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l require-backend -x -d "fail if anything ran elsewhere"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l fail-on-nonfinite -d "exit with 1 if there is a NaN or an infinity"
complete -c tensormorph -n "__fish_seen_subcommand_from explain bench" -l dtype -x -d "formats of the inputs"
complete -c tensormorph -n "__fish_seen_subcommand_from explain bench" -l shape -x -d "shapes of the inputs"
