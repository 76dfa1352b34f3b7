# Completes the command line of stasis in bash. stasis completion bash prints this file.

_stasis() {
  local IFS=$'\n' command=${COMP_WORDS[0]}
  # shellcheck disable=SC2207 # mapfile is missing in the bash of macOS
  COMPREPLY=($("${command/#\~/$HOME}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
  # In --engine=sh, bash replaces only what follows the =.
  if [[ ${COMP_WORDS[COMP_CWORD]} == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    COMPREPLY=("${COMPREPLY[@]#*=}")
  fi
}

complete -o default -F _stasis stasis
