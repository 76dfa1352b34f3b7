//go:build !amd64

package confine

// refusedHere are the older forms of refused calls; newer architectures have none.
func refusedHere() []uint32 { return nil }
