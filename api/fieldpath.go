package api

import "fmt"

// fieldPath is the position of a value in a body, as a chain from the value to the root.
// Most paths are never formatted. nil is the body itself.
type fieldPath struct {
	above *fieldPath
	name  string // of a member
	item  int    // of an array; -1 for a member
}

func (p *fieldPath) member(name string) *fieldPath { return &fieldPath{above: p, name: name, item: -1} }

func (p *fieldPath) index(i int) *fieldPath { return &fieldPath{above: p, item: i} }

// String returns the path as errors name fields: "labels.team", "rights[0]"; "" for the
// body.
func (p *fieldPath) String() string {
	switch {
	case p == nil:
		return ""
	case p.item >= 0:
		return fmt.Sprintf("%s[%d]", p.above, p.item)
	case p.above == nil:
		return shortened(p.name)
	}
	return p.above.String() + "." + shortened(p.name)
}
