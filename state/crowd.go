package state

import (
	"bytes"
	"fmt"
)

// The most that a state file of somebody else's may hold, down to the records of
// a database and not within their values. Each object becomes a struct: millions
// of empty ones fit into a file of megabytes and take gigabytes.
const (
	maxObjects  = 500_000
	maxElements = 2_000_000
	crowdDepth  = 10 // of a record's members in a storageState
)

// CheckCrowd reports whether a state file holds more objects, arrays or elements
// than may be decoded. It takes no memory. What is not JSON it may pass.
func CheckCrowd(data []byte) error {
	objects, elements, depth := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
		case '{', '[':
			if depth++; depth <= crowdDepth {
				objects++
			}
		case '}', ']':
			depth--
		case ',':
			if depth <= crowdDepth {
				elements++
			}
		}
		if objects > maxObjects || elements > maxElements {
			return fmt.Errorf("it holds more than %d objects and arrays, or %d elements", maxObjects, maxElements)
		}
	}
	return nil
}

// stringEnd is where the string ends that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		next := bytes.IndexAny(data[i:], `"\`)
		if next < 0 {
			return len(data)
		}
		if i += next; data[i] == '"' {
			return i
		}
		i++ // what is escaped may be a quote
	}
	return i
}
