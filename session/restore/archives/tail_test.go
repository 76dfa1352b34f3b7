package archives

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeVault unpacks an archive with a head and these names in its tail.
type fakeVault struct {
	Vault
	tail []string
	head error // before the end of the head
}

func (v fakeVault) Unpack(ctx context.Context, _ snapshot.Snapshot, dst string, o snapshot.UnpackOptions) (snapshot.UnpackResult, error) {
	if v.head != nil {
		return snapshot.UnpackResult{}, v.head
	}
	if err := o.Head(snapshot.UnpackResult{Entries: 1}); err != nil {
		return snapshot.UnpackResult{}, err
	}
	for _, name := range v.tail {
		if o.Accept(name) {
			if err := o.Tail.WriteFile(name, nil, 0o600); err != nil {
				return snapshot.UnpackResult{}, err
			}
		}
	}
	return snapshot.UnpackResult{}, ctx.Err()
}

// fakeDatadirs accepts all names but "refused", and in a tail those that begin with "cache".
type fakeDatadirs struct{}

func (fakeDatadirs) ExclusionReason(name string) string {
	if strings.Contains(name, "refused") {
		return "refused"
	}
	return ""
}
func (fakeDatadirs) InTail(name string) bool { return strings.HasPrefix(name, "cache") }

// unpackHead unpacks the head of such an archive.
func unpackHead(t *testing.T, v fakeVault) (*tail, string, error) {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "later")
	a := New(Config{Vault: v, Datadirs: fakeDatadirs{}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // the tail outlives the call that restores the head
	head, got, err := a.unpackHead(ctx, snapshot.Snapshot{ID: "s"}, dir, folder, snapshot.UnpackOptions{})
	if err == nil && head.Entries != 1 {
		t.Errorf("the head: %+v", head)
	}
	return got, folder, err
}

// The tail is unpacked when somebody waits for it, and any number of callers may wait.
func TestTail(t *testing.T) {
	tail, folder, err := unpackHead(t, fakeVault{tail: []string{"cache"}})
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("before Wait: %v, %v", entries, err)
	}
	if err := errors.Join(tail.Wait(t.Context()), tail.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	tail.Stop()
	if _, err := os.Stat(filepath.Join(folder, "cache")); err != nil {
		t.Error(err)
	}
}

// A tail that is stopped, or whose waiter's time ends, is not unpacked.
func TestTailStopped(t *testing.T) {
	for _, stop := range []func(*tail){
		(*tail).Stop,
		func(tail *tail) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := tail.Wait(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("Wait: %v", err)
			}
		},
	} {
		tail, _, err := unpackHead(t, fakeVault{tail: []string{"cache"}})
		if err != nil {
			t.Fatal(err)
		}
		stop(tail)
	}
}

// A name that this version does not expect in a tail, or does not accept, makes the tail fail:
// nothing would wait for that file.
func TestForeignTail(t *testing.T) {
	for _, name := range []string{"Cookies", "cache refused"} {
		tail, _, err := unpackHead(t, fakeVault{tail: []string{"cache", name}})
		if err != nil {
			t.Fatal(err)
		}
		if err := tail.Wait(t.Context()); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error before the end of the head is the error of the call.
func TestDamagedHead(t *testing.T) {
	damaged := errors.New("damaged")
	if tail, _, err := unpackHead(t, fakeVault{head: damaged}); tail != nil || !errors.Is(err, damaged) {
		t.Errorf("%v", err)
	}
}
