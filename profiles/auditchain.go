package profiles

import (
	"fmt"
	"strconv"
)

// BrokenAudit says where an audit log is not what was written.
type BrokenAudit struct {
	Number int64 // of the first entry that is wrong or missing
	Why    string
}

func (b *BrokenAudit) Error() string { return fmt.Sprintf("entry %d %s", b.Number, b.Why) }

// AuditChain checks the entries of an audit log, from the oldest to the newest. The zero
// AuditChain has seen none.
type AuditChain struct {
	First, Last AuditEntry
	Count       int64
	// pruned is the newest entry that says which entries were deleted because of their age.
	pruned AuditEntry
}

// Add checks the next entry. An error is a [*BrokenAudit].
func (c *AuditChain) Add(e AuditEntry) error {
	switch {
	case c.Count > 0 && e.Number > c.Last.Number+1:
		return &BrokenAudit{c.Last.Number + 1, "is missing"}
	case c.Count > 0 && e.Number != c.Last.Number+1:
		return &BrokenAudit{e.Number, fmt.Sprintf("comes after entry %d", c.Last.Number)}
	case e.Hash != e.Sum():
		return &BrokenAudit{e.Number, "does not match its hash"}
	case c.Count > 0 && e.Previous != c.Last.Hash:
		return &BrokenAudit{e.Number, fmt.Sprintf("does not follow entry %d, whose hash is another one", c.Last.Number)}
	}
	if c.Count == 0 {
		c.First = e
	}
	if e.Call == AuditPruned && e.By == "daemon" {
		c.pruned = e
	}
	c.Last = e
	c.Count++
	return nil
}

// CheckBegin checks that nothing is missing before the first entry: it is entry 1, or the
// log says that the entries before it were deleted because of their age. An error is a
// [*BrokenAudit].
func (c *AuditChain) CheckBegin() error {
	switch {
	case c.Count == 0:
		return nil
	case c.First.Number == 1:
		if c.First.Previous != (AuditHash{}) {
			return &BrokenAudit{1, "names an entry before it"}
		}
		return nil
	case c.pruned.Object == strconv.FormatInt(c.First.Number-1, 10) && c.pruned.Detail == c.First.Previous.String():
		return nil
	}
	return &BrokenAudit{c.First.Number - 1, "is missing, and no entry says that it was deleted because of its age"}
}
