//go:build !stasis_no_target_policy

package mux

// TargetPolicy says whether the mux checks the addresses that targets show. The build tag
// stasis_no_target_policy turns this off, for tests of the other protections of the
// machine's files.
const TargetPolicy = true
