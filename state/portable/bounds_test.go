package portable_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state/portable"
)

// A cookies.txt can have 100,000 cookies. Its next one is refused before it is read.
func TestTooManyCookies(t *testing.T) {
	var file strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&file, "a.example\tFALSE\t/\tFALSE\t0\t%d\tv\n", i)
	}
	doc, _, err := portable.ReadNetscape([]byte(file.String()))
	if err != nil || len(doc.Cookies) != 100_000 {
		t.Fatalf("%d cookies, %v", len(doc.Cookies), err)
	}
	_, _, err = portable.ReadNetscape([]byte(file.String() + "# a comment\n\nanything\n"))
	if want := "cookies: line 100003 is beyond the limit; a file can have at most 100000 cookies"; !fault.Is(err, fault.InvalidImport) || fault.MessageOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A line of many fields takes no memory for each field.
func TestLineOfTabs(t *testing.T) {
	const size = 8 << 20
	file := []byte("x" + strings.Repeat("\t", size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := portable.ReadNetscape(file)
	runtime.ReadMemStats(&after)
	if want := fmt.Sprintf("not %d", size+1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4*size {
		t.Errorf("%d bytes were allocated for a file of %d", grown, size)
	}
}
