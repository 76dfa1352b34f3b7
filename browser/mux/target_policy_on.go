//go:build !stasis_no_target_policy

package mux

// TargetPolicy says that the mux follows what targets show. The build tag
// stasis_no_target_policy leaves that out, for tests of what else protects the
// machine's files.
const TargetPolicy = true
