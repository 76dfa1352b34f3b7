package state

import (
	"strconv"
	"strings"
	"time"
)

// Identity returns what identifies a cookie in a jar: domain, path, name and partition
// (RFC 6265bis section 5.7, CHIPS). It leaves out source scheme and port, and holds no
// value.
func (c Cookie) Identity() string {
	id := strings.Join([]string{c.Domain, c.Path, c.Name}, "\x00")
	if c.Partition != nil {
		id += "\x00" + c.Partition.TopLevelSite + "\x00" + strconv.FormatBool(c.Partition.HasCrossSiteAncestor)
	}
	return id
}

// Expired reports whether a persistent cookie has expired.
func (c Cookie) Expired(now time.Time) bool {
	return !c.Session && c.Expires < float64(now.UnixNano())/1e9
}

// Origin returns the cookie's domain without the leading dot, for reports.
func (c Cookie) Origin() string { return strings.TrimPrefix(c.Domain, ".") }
