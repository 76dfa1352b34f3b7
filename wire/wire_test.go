package wire

import (
	"encoding/json"
	"testing"
	"time"
)

// Times have milliseconds and are in UTC, wherever they are. All else is as encoding/json
// writes it.
func TestMarshal(t *testing.T) {
	at := time.Date(2026, 11, 22, 5, 0, 0, 120_987_000, time.FixedZone("", 3600))
	type embedded struct {
		Embedded string `json:"embedded"`
	}
	type value struct {
		embedded
		At      time.Time         `json:"at"`
		Maybe   *time.Time        `json:"maybe"`
		Absent  *time.Time        `json:"absent"`
		Omitted *time.Time        `json:"omitted,omitempty"`
		Zero    time.Time         `json:"zero,omitzero"`
		Empty   string            `json:"empty,omitempty"`
		Raw     json.RawMessage   `json:"raw"`
		Nil     []string          `json:"nil"`
		Labels  map[string]string `json:"labels"`
		Any     any               `json:"any"`
		Bytes   []byte            `json:"bytes"`
		Number  float64           `json:"number"`
	}
	v := value{embedded: embedded{"<b>"}, At: at, Maybe: &at, Raw: json.RawMessage(`{"b":1, "a":1.50,"at":"2026-11-22T04:00:00Z"}`), Labels: map[string]string{"b": "", "a": "\u2028"},
		Any: map[string]any{"times": []time.Time{at.Truncate(time.Second)}, "n": json.Number("1e3")}, Bytes: []byte("x"), Number: 1e21}
	got, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	// The same value with every time as a string.
	type plain struct {
		embedded
		At     string            `json:"at"`
		Maybe  string            `json:"maybe"`
		Absent *string           `json:"absent"`
		Raw    json.RawMessage   `json:"raw"`
		Nil    []string          `json:"nil"`
		Labels map[string]string `json:"labels"`
		Any    any               `json:"any"`
		Bytes  []byte            `json:"bytes"`
		Number float64           `json:"number"`
	}
	const utc = "2026-11-22T04:00:00.120Z"
	want, err := json.Marshal(plain{embedded: v.embedded, At: utc, Maybe: utc, Raw: v.Raw, Labels: v.Labels,
		Any: map[string]any{"times": []string{"2026-11-22T04:00:00.000Z"}, "n": json.Number("1e3")}, Bytes: v.Bytes, Number: v.Number})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := Marshal(make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
}
