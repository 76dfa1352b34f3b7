package api

import "fmt"

// fieldPath is where a value stands in a body, as a chain from the value
// upwards: most are never written out. nil is the body itself.
type fieldPath struct {
	above *fieldPath
	name  string // of a member
	item  int    // of an array; -1 for a member
}

func (p *fieldPath) member(name string) *fieldPath { return &fieldPath{above: p, name: name, item: -1} }

func (p *fieldPath) index(i int) *fieldPath { return &fieldPath{above: p, item: i} }

// String is the path as errors name fields: "labels.team", "rights[0]"; "" for
// the body.
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
