package mux

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stasisd/stasis/budget"
)

// A frame above the limit or the budget is skipped: next returns its beginning, and the
// following frame is whole.
func TestLargeFrames(t *testing.T) {
	large := `{"id":7,"result":"` + strings.Repeat("x", 5<<20) + `"}`
	for name, test := range map[string]struct {
		limit, memory int
		whole         bool
	}{
		"within":         {8 << 20, 64 << 20, true},
		"too large":      {4 << 20, 64 << 20, false},
		"without memory": {8 << 20, 2 << 20, false},
	} {
		memory := budget.New(test.memory)
		in := frames{r: strings.NewReader(large + "\x00{}\x00" + large + "\x00"), limit: test.limit,
			open: func(evict func()) *budget.Account { return memory.Open(nil, evict) }}
		for _, want := range []string{large, "{}", large} {
			msg, whole, err := in.next()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if whole != (test.whole || want == "{}") || whole && string(msg) != want || !bytes.HasPrefix(msg, []byte(want[:2])) || !whole && len(msg) > headSize {
				t.Errorf("%s: %d bytes, whole %v: %.60s", name, len(msg), whole, msg)
			}
		}
		if _, _, err := in.next(); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		if used, _ := memory.Use(); used != 0 {
			t.Errorf("%s: %d bytes of the budget are still used", name, used)
		}
	}
}
