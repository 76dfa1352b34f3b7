# Completes the command line of stasis in fish. stasis completion fish prints this file.

function __stasis_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l stasis (string replace -r '^~(?=/)' "$HOME" -- $before[1])
    type -q "$stasis"; or return
    set -l found ($stasis __complete -- $before[2..] "$current" 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end

complete -c stasis -f -a '(__stasis_complete)'
