//go:build stasis_no_target_policy

package mux

// TargetPolicy is off: this build is for tests.
const TargetPolicy = false
