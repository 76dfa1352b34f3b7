package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// period is a duration on the command line that may be given in days: 30d, 12h, 1h30m.
type period time.Duration

// Duration returns the period for calculations.
func (p period) Duration() time.Duration { return time.Duration(p) }

// String returns the period as people write it: 24h, 1h30m, 30d.
func (p period) String() string {
	const day = 24 * time.Hour
	if d := p.Duration(); d > day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return shortDuration(p.Duration())
}

// shortDuration returns a duration as time.ParseDuration reads it, without zeros at its end:
// 24h, 1h30m.
func shortDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// UnmarshalText reads a whole number of days, or what time.ParseDuration reads.
func (p *period) UnmarshalText(text []byte) error {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		const day = 24 * time.Hour
		n, err := strconv.ParseInt(days, 10, 64)
		if limit := int64(1<<63-1) / int64(day); err != nil || n > limit || n < -limit {
			return fmt.Errorf("%q is not a number of days", text)
		}
		*p = period(time.Duration(n) * day)
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration, such as 12h or 30d", text)
	}
	*p = period(d)
	return nil
}
