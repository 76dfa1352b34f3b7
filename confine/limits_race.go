//go:build race

package confine

// limitMemory says whether the memory of children is limited. The race detector maps
// terabytes for its own use.
const limitMemory = false
