package session

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// unread fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// endless is a body without an end that begins like an archive.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.n += int64(len(p))
	return len(p), nil
}

// An upload is refused before it is read if its declared size is too large or exceeds the
// free space. One without a declared size is refused before it fills the disk. Nothing is
// left of it.
func TestImportNeedsSpace(t *testing.T) {
	r := newRig(t, nil)
	r.watched.Store = memstore.New(2*snapshot.MaxKept, time.Now)
	_, err := r.Import(t.Context(), alice, importer.Request{Format: library.FormatDatadir, Size: 3 * snapshot.MaxKept}, unread{t})
	wantCode(t, err, fault.StoreFull)
	_, err = r.Import(t.Context(), alice, importer.Request{Format: library.FormatPlaywright, Size: snapshot.MaxKept + 1}, unread{t})
	wantCode(t, err, fault.TooLarge)
	body := &endless{}
	_, err = r.Import(t.Context(), alice, importer.Request{Format: library.FormatDatadir, Size: -1}, body)
	wantCode(t, err, fault.StoreFull)
	if body.n > 3*snapshot.MaxKept || r.dirs() != 0 {
		t.Errorf("%d bytes were read; %d run directories are left", body.n, r.dirs())
	}
}

// slow starts an upload that does not end before its pipe is closed.
func (r *rig) slow(c access.Caller) (end func() error) {
	r.t.Helper()
	body, to := io.Pipe()
	outcome := make(chan error, 1)
	go func() {
		_, err := r.Import(r.t.Context(), c, importer.Request{Format: library.FormatNetscape}, body)
		outcome <- err
		_ = body.Close()
	}()
	if _, err := io.WriteString(to, "a.example\tFALSE\t/\tFALSE\t0\tn\tv\n"); err != nil { // the upload is being read
		r.t.Fatal(err)
	}
	return func() error {
		_ = to.Close()
		return <-outcome
	}
}

// A slow upload does not delay other imports. Only complete uploads take turns.
func TestSlowUploadsTakeNoTurn(t *testing.T) {
	r := newRig(t, nil)
	var ends []func() error
	for range importer.MaxImports {
		ends = append(ends, r.slow(alice), r.slow(bob))
	}
	r.importFile(alice, importer.Request{Format: library.FormatNetscape}, "a.example\tFALSE\t/\tFALSE\t0\tn\tv\n")
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// The number of concurrent imports is bounded. A further one is refused, and accepted
// when one has ended.
func TestConcurrentImportsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	refused := func(c access.Caller) {
		t.Helper()
		_, err := r.Import(t.Context(), c, importer.Request{Format: library.FormatNetscape}, unread{t})
		wantCode(t, err, fault.TooManyImports)
		if !strings.Contains(fault.MessageOf(err), "too many imports") {
			t.Error(err)
		}
	}
	var ends []func() error
	for range importer.MaxUserUploads {
		ends = append(ends, r.slow(alice))
	}
	refused(alice)
	for user := range importer.MaxUploads/importer.MaxUserUploads - 1 {
		for range importer.MaxUserUploads {
			ends = append(ends, r.slow(access.Caller{KeyID: bob.KeyID, UserID: fmt.Sprint("user-", user), Rights: bob.Rights}))
		}
	}
	refused(bob)
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	ends = nil
	for user := range importer.MaxUploads { // every slot is free again
		ends = append(ends, r.slow(access.Caller{KeyID: bob.KeyID, UserID: fmt.Sprint("user-", user%importer.MaxUserUploads), Rights: bob.Rights}))
	}
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// An import for another user counts for that user, and takes its turn.
func TestImportsCountForTheirUser(t *testing.T) {
	r := newRig(t, nil)
	var ends []func() error
	for range importer.MaxUserUploads {
		ends = append(ends, r.slow(alice))
	}
	x := importer.Request{Format: library.FormatNetscape, UserID: "alice"}
	_, err := r.Import(t.Context(), admin, x, unread{t})
	wantCode(t, err, fault.TooManyImports)
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	r.setCheck(true)
	checking, goOn := make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(goOn) })
	defer finish()
	r.browsers.on("check", func(*fakeChrome) error { close(checking); <-goOn; return nil })
	done := make(chan error, 1)
	go func() {
		x.SaveAsDefault, x.Conflict = true, save.Overwrite
		_, err := r.Import(context.Background(), admin, x, strings.NewReader(oneCookie))
		done <- err
	}()
	<-checking // the import for alice has her turn
	if n := r.held(admin.KeyID, quota.Sessions); n != 1 {
		t.Errorf("%d sessions count for the key while its import checks a login", n)
	}
	r.importFile(admin, importer.Request{Format: library.FormatNetscape, UserID: "bob"}, oneCookie)
	finish()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

const oneCookie = "a.example\tFALSE\t/\tFALSE\t0\tn\tv\n"
