//go:build linux

package main

import (
	"testing"
	"time"
)

func TestPeriod(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "0s": 0, "1h30m": 90 * time.Minute, "-1d": -24 * time.Hour, "106751d": 106751 * 24 * time.Hour,
	} {
		var p period
		if err := p.UnmarshalText([]byte(text)); err != nil || p.Duration() != want {
			t.Errorf("%s: got %v, %v; want %v", text, p.Duration(), err, want)
		}
	}
	for want, d := range map[string]time.Duration{"24h": 24 * time.Hour, "30d": 720 * time.Hour, "1h30m": 90 * time.Minute, "10m": 10 * time.Minute, "5s": 5 * time.Second, "0s": 0, "25h": 25 * time.Hour} {
		if got := period(d).String(); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
	for _, text := range []string{"", "d", "1.5d", "106752d", "99999999999999999999d", "1w", "30"} {
		var p period
		if err := p.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %v, want an error", text, p.Duration())
		}
	}
}
