package state

import (
	"bytes"
	"fmt"
)

// Limits of an imported state file. They count objects and elements down to the records
// of a database, but not within the records' values. Each object becomes a struct: a few
// megabytes hold millions of empty objects, which would take gigabytes of memory.
const (
	maxObjects   = 500_000
	maxElements  = 2_000_000
	countedDepth = 10 // of a record's members in a storageState
	// maxDocumentElements limits a document. It has members that the file need not have: a
	// cookie at least nine.
	maxDocumentElements = 5_000_000
)

// CheckObjectCount returns an error if a state file holds more objects, arrays or
// elements than may be decoded. It allocates nothing. It may accept input that is not
// JSON.
func CheckObjectCount(data []byte) error { return checkCount(data, maxElements) }

// CheckDocumentCount is [CheckObjectCount] for a [Document] that another process made of an
// imported file.
func CheckDocumentCount(data []byte) error { return checkCount(data, maxDocumentElements) }

func checkCount(data []byte, mostElements int) error {
	objects, elements, depth := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
		case '{', '[':
			if depth++; depth <= countedDepth {
				objects++
			}
		case '}', ']':
			depth--
		case ',':
			if depth <= countedDepth {
				elements++
			}
		}
		if objects > maxObjects || elements > mostElements {
			return fmt.Errorf("the file holds more than %d objects and arrays, or more than %d elements", maxObjects, mostElements)
		}
	}
	return nil
}

// stringEnd returns the index at which the string that begins at i ends.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		next := bytes.IndexAny(data[i:], `"\`)
		if next < 0 {
			return len(data)
		}
		if i += next; data[i] == '"' {
			return i
		}
		i++ // an escaped byte may be a quote
	}
	return i
}
