package sqldb

import (
	"encoding/json"
	"math"
	"time"
)

// row is a result row that can be scanned: *sql.Row or *sql.Rows.
type row interface{ Scan(dest ...any) error }

// rowAnd is a row with one more column.
type rowAnd struct {
	row
	last any
}

func (r rowAnd) Scan(dest ...any) error { return r.row.Scan(append(dest, r.last)...) }

// stamp returns a time as it is stored: nanoseconds since 1970, 0 for the zero time.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// notBefore returns later, or earlier if the clock was set back between them. So no age
// is negative.
func notBefore(earlier, later time.Time) time.Time {
	if later.Before(earlier) {
		return earlier
	}
	return later
}

// moment scans a stored time into a time.Time in UTC.
type moment struct{ to *time.Time }

// Scan implements sql.Scanner.
func (m moment) Scan(v any) error {
	*m.to = time.Time{}
	if n, ok := v.(int64); ok && n != 0 {
		*m.to = time.Unix(0, n).UTC()
	}
	return nil
}

// blob returns a JSON document as it is stored, byte for byte; an empty one is NULL.
func blob(doc json.RawMessage) any {
	if len(doc) == 0 {
		return nil
	}
	return []byte(doc)
}

// encode returns a map or list as JSON text. An empty one becomes null and is read as
// nil.
func encode[T map[string]string | []string](v T) (string, error) {
	if len(v) == 0 {
		return "null", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// limited returns a row count for LIMIT; a number that is not positive means no limit.
func limited(n int) int64 {
	if n <= 0 {
		return math.MaxInt64
	}
	return int64(n)
}
