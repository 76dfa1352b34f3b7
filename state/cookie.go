package state

import (
	"strconv"
	"strings"
	"time"
)

// Identity is what makes two cookies the same one in a jar: domain, path, name
// and partition (RFC 6265bis section 5.7, CHIPS), source scheme and port left
// out. It holds no value.
func (c Cookie) Identity() string {
	id := strings.Join([]string{c.Domain, c.Path, c.Name}, "\x00")
	if c.Partition != nil {
		id += "\x00" + c.Partition.TopLevelSite + "\x00" + strconv.FormatBool(c.Partition.HasCrossSiteAncestor)
	}
	return id
}

// Expired reports whether a persistent cookie's time is over.
func (c Cookie) Expired(now time.Time) bool {
	return !c.Session && c.Expires < float64(now.UnixNano())/1e9
}

// Origin is the cookie's domain without the leading dot, for reports.
func (c Cookie) Origin() string { return strings.TrimPrefix(c.Domain, ".") }
