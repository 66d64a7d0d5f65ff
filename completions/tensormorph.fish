# SPDX-License-Identifier: Apache-2.0
# Completion of the tensormorph command for fish.
function __tensormorph_names
    tensormorph $argv[1] --json 2>/dev/null | string replace -rf '^ *"name": "([^"]*)".*' '$1' | sort -u
end

set -l commands backends ops inspect stats check diff explain bench plugin profile calibrate help
set -l none "not __fish_seen_subcommand_from $commands"

complete -c tensormorph -f
complete -c tensormorph -n $none -a backends -d "backends and their devices"
complete -c tensormorph -n $none -a ops -d "operations, and what each device makes of them"
complete -c tensormorph -n $none -a inspect -d "metadata and tensors of a checkpoint"
complete -c tensormorph -n $none -a stats -d "statistics of every tensor"
complete -c tensormorph -n $none -a check -d "what is wrong with files"
complete -c tensormorph -n $none -a diff -d "whether two checkpoints are the same"
complete -c tensormorph -n $none -a explain -d "where an operation would run, and why"
complete -c tensormorph -n $none -a bench -d "time an operation on a device"
complete -c tensormorph -n $none -a plugin -d "check a backend, begin one, list plugins"
complete -c tensormorph -n $none -a profile -d "what was learned of costs"
complete -c tensormorph -n $none -a calibrate -d "measure each device"
complete -c tensormorph -n $none -a help -d "what there is, or what a command does"
complete -c tensormorph -n $none -s V -l version -d "print the version"

complete -c tensormorph -l device -x -a "(__tensormorph_names backends)" -d "use only this device"
complete -c tensormorph -l no-device -x -a "(__tensormorph_names backends)" -d "never use this device"
complete -c tensormorph -l accept -x -a "N0 N1 N2 N3" -d "weakest numerics class to accept"
complete -c tensormorph -l threads -x -d "threads to compute with"
complete -c tensormorph -l plugin -r -F -d "also load this plugin"
complete -c tensormorph -l max-memory -x -d "fail instead of allocating more"
complete -c tensormorph -l patience -x -d "what a plugin gets for a call"
complete -c tensormorph -l strict -d "fail when a device fails"
complete -c tensormorph -l set -x -d "set an option of a backend"
complete -c tensormorph -l json -d "print one JSON document"
complete -c tensormorph -l color -d "colour even if the output is no terminal"
complete -c tensormorph -l no-color -d "no colour"
complete -c tensormorph -s q -l quiet -d "no progress, no notes"
complete -c tensormorph -s h -l help -d "help"

complete -c tensormorph -n "__fish_seen_subcommand_from backends" -l options -d "list the options of backends"
complete -c tensormorph -n "__fish_seen_subcommand_from help" -a "$commands"
complete -c tensormorph -n "__fish_seen_subcommand_from ops explain bench" -a "(__tensormorph_names ops)"

set -l checked "__fish_seen_subcommand_from check; and not __fish_seen_subcommand_from plugin"
complete -c tensormorph -n $checked -F
complete -c tensormorph -n $checked -l tensor -x -d "only values of tensors that match"
complete -c tensormorph -n $checked -l exclude -x -d "no values of tensors that match"
complete -c tensormorph -n $checked -l max-header -x -d "accept headers up to this size"

set -l files "__fish_seen_subcommand_from inspect stats diff"
complete -c tensormorph -n $files -F
complete -c tensormorph -n $files -l tensor -x -d "only tensors that match"
complete -c tensormorph -n $files -l exclude -x -d "no tensors that match"
complete -c tensormorph -n $files -l sort -x -d "order by a column" \
    -a "file name dtype shape count nan pos_inf neg_inf zero subnormal min max abs_max mean std l2 bytes offset type state verdict other_name changed max_abs rel_l2 cosine"
complete -c tensormorph -n $files -l top -x -d "only the first rows"
complete -c tensormorph -n $files -l columns -x -d "columns of the table"
complete -c tensormorph -n $files -l wide -d "all columns, as wide as they need to be"
complete -c tensormorph -n $files -l csv -d "print comma-separated values"
complete -c tensormorph -n $files -l max-header -x -d "accept headers up to this size"
complete -c tensormorph -n "__fish_seen_subcommand_from inspect" -l metadata-only -d "print no tensors"
complete -c tensormorph -n "__fish_seen_subcommand_from stats diff" -l reproducible -d "bit-equal results only"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l require-backend -x -a "(__tensormorph_names backends)" \
    -d "exit with 1 if work ran elsewhere"
complete -c tensormorph -n "__fish_seen_subcommand_from stats" -l fail-on-nonfinite -d "exit with 1 if there is a NaN or an infinity"
complete -c tensormorph -n "__fish_seen_subcommand_from diff" -l all -d "list what is the same, too"
complete -c tensormorph -n "__fish_seen_subcommand_from diff" -l by -x -a "layer kind" -d "add tensors up"
complete -c tensormorph -n "__fish_seen_subcommand_from diff" -l exact -d "another name or form is a difference, too"
complete -c tensormorph -n "__fish_seen_subcommand_from diff" -l tolerance -x -d "largest difference that is none"
complete -c tensormorph -n "__fish_seen_subcommand_from diff" -l names-only -d "look for nothing by content"

set -l operation "__fish_seen_subcommand_from explain bench"
complete -c tensormorph -n $operation -l dtype -x -d "formats of the inputs"
complete -c tensormorph -n $operation -l shape -x -d "shapes of the inputs"
complete -c tensormorph -n $operation -l output-dtype -x -d "format of the output"
complete -c tensormorph -n $operation -l attr -x -d "an attribute of the operation"
complete -c tensormorph -n $operation -l transpose-a -d "the first matrix lies transposed"
complete -c tensormorph -n $operation -l transpose-b -d "the second matrix lies transposed"
complete -c tensormorph -n $operation -l axis -x -d "axis or axes to work along"
complete -c tensormorph -n $operation -l constant -x -d "this input never changes"
complete -c tensormorph -n "__fish_seen_subcommand_from explain" -l graph -r -F -d "explain a saved graph"
complete -c tensormorph -n "__fish_seen_subcommand_from explain" -l node -x -d "only this node of the graph"
complete -c tensormorph -n "__fish_seen_subcommand_from explain" -l repeats -x -d "how often the graph will run"
complete -c tensormorph -n "__fish_seen_subcommand_from bench" -l repeat -x -d "measure exactly so many runs"
complete -c tensormorph -n "__fish_seen_subcommand_from bench" -l min-time -x -d "measure at least so long"

complete -c tensormorph -n "__fish_seen_subcommand_from calibrate" -l seconds -x -d "end after about so long"
complete -c tensormorph -n "__fish_seen_subcommand_from profile" -a "show reset export import"
complete -c tensormorph -n "__fish_seen_subcommand_from profile" -F

set -l plugin "__fish_seen_subcommand_from plugin"
complete -c tensormorph -n $plugin -a "check new list forgive"
complete -c tensormorph -n $plugin -F
complete -c tensormorph -n $plugin -l quick -d "stop after 10 seconds a device"
complete -c tensormorph -n $plugin -l full -d "everything that is claimed"
complete -c tensormorph -n $plugin -l budget -x -d "stop after so many seconds"
complete -c tensormorph -n $plugin -l seed -x -d "of all random numbers"
complete -c tensormorph -n $plugin -l cases -x -d "for each claimed combination"
complete -c tensormorph -n $plugin -l only -x -a "(__tensormorph_names ops)" -d "only this operation or check"
complete -c tensormorph -n $plugin -l leave-out -x -d "not this check of manners"
complete -c tensormorph -n $plugin -l formats -x -d "only these formats"
complete -c tensormorph -n $plugin -l case -x -d "only this case"
complete -c tensormorph -n $plugin -l deadline -x -d "seconds until a case counts as hanging"
complete -c tensormorph -n $plugin -l no-isolate -d "in one process, for a debugger"
complete -c tensormorph -n $plugin -l folder -r -F -d "where new writes"
complete -c tensormorph -n $plugin -l queue -d "new: with memory of its own and a queue"
