#compdef stasis
# Completes the command line of stasis in zsh. stasis completion zsh prints this file.

_stasis() {
  local line
  local -a found
  for line in ${(f)"$(${~words[1]} __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then
    _describe stasis found
  else
    compset -P '*='
    _files
  fi
}

if [[ $funcstack[1] == _stasis ]]; then
  _stasis "$@"
else
  compdef _stasis stasis
fi
