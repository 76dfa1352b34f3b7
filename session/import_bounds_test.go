package session

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// unread fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// endless is a body without an end, that begins as an archive does.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.n += int64(len(p))
	return len(p), nil
}

// An upload that is too large by its own word, or that there is no room for, is
// refused before it is read; one that does not say how large it is, before it has
// filled the disk. Nothing is left of it.
func TestImportNeedsRoom(t *testing.T) {
	r := newRig(t, nil)
	r.Vault = snapshot.NewVault(memstore.New(2*snapshot.MaxKept, time.Now), r.keys, snapshot.Options{})
	_, err := r.Import(t.Context(), alice, Import{Format: FormatDatadir, Size: 3 * snapshot.MaxKept}, unread{t})
	wantCode(t, err, fault.StoreFull)
	_, err = r.Import(t.Context(), alice, Import{Format: FormatPlaywright, Size: snapshot.MaxKept + 1}, unread{t})
	wantCode(t, err, fault.TooLarge)
	body := &endless{}
	_, err = r.Import(t.Context(), alice, Import{Format: FormatDatadir, Size: -1}, body)
	wantCode(t, err, fault.StoreFull)
	if body.n > 3*snapshot.MaxKept || r.dirs() != 0 {
		t.Errorf("%d bytes were read; %d run directories are left", body.n, r.dirs())
	}
}

// Only so many imports run at once; another one is told to come back, and is
// taken when one has ended.
func TestImportsAreFew(t *testing.T) {
	r := newRig(t, nil)
	for range maxImports {
		r.Service.imports <- struct{}{}
	}
	const file = "a.example\tFALSE\t/\tFALSE\t0\tn\tv\n"
	_, err := r.Import(t.Context(), alice, Import{Format: FormatNetscape}, unread{t})
	wantCode(t, err, fault.TooManyImports)
	if !strings.Contains(fault.MessageOf(err), "too many imports") {
		t.Error(err)
	}
	<-r.Service.imports
	r.imports(alice, Import{Format: FormatNetscape}, file)
	if n := len(r.Service.imports); n != maxImports-1 {
		t.Errorf("%d imports run", n)
	}
}
