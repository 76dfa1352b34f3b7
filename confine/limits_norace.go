//go:build !race

package confine

// limitMemory says whether the memory of children is limited.
const limitMemory = true
