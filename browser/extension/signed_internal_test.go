package extension

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// What is not signed is not written, whatever its parts are, and no more than an extension can have.
func TestPackedWriter(t *testing.T) {
	for text, want := range map[string]string{"": "", "sig": "sig", "signed": "signed", "signed zip": "signed zip", "sicned zip": "si", "xigned": ""} {
		for _, part := range []int{1, 2, 4, 100} {
			var got bytes.Buffer
			to := &packedWriter{to: &got, mac: []byte("signed")}
			_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{strings.NewReader(text)}, make([]byte, part))
			refused := strings.HasPrefix(text, "sic") || strings.HasPrefix(text, "x")
			if refused != fault.Is(err, fault.StoreFailed) || (err != nil) != refused {
				t.Errorf("%q in parts of %d: %v", text, part, err)
			}
			if refused && got.Len() >= len("signed") || !refused && got.String() != want {
				t.Errorf("%q in parts of %d: wrote %q", text, part, got.String())
			}
		}
	}
	to := &packedWriter{to: io.Discard, mac: []byte("signed"), begin: []byte("signed"), size: maxPacked - 1}
	if _, err := to.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := to.Write([]byte("x")); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("the writer took too much: %v", err)
	}
}
