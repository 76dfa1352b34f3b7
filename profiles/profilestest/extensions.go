package profilestest

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// extension returns an extension of a user, with every field set.
func (f *fixture) extension(id, user, sha string) profiles.Extension {
	f.n++
	return profiles.Extension{ID: id, UserID: user, SHA256: sha, Name: "Имя\n\"", Version: "1.2", SizeBytes: 1 << 40,
		CreatedAt: start.Add(time.Duration(f.n) * time.Second)}
}

func (f *fixture) put(e profiles.Extension) (is profiles.Extension, fresh bool, unused string) {
	f.Helper()
	is, fresh, unused, err := f.c.Extensions.PutExtension(f.ctx, e, nil)
	f.must(err)
	return is, fresh, unused
}

// An extension belongs to its user. The same files are recorded once, and another version
// replaces the first.
func testExtensions(f *fixture) {
	first := f.extension("aaaa", "ada", "one")
	is, fresh, unused := f.put(first)
	f.same(is, first)
	f.same([]any{fresh, unused}, []any{true, ""})
	is, fresh, unused = f.put(f.extension("aaaa", "ada", "one"))
	f.same(is, first)
	f.same([]any{fresh, unused}, []any{false, ""})

	others := f.extension("aaaa", "bob", "one")
	f.put(others)
	second := f.extension("aaaa", "ada", "two")
	_, fresh, unused = f.put(second)
	f.same([]any{fresh, unused}, []any{true, ""}) // bob still has the files
	third := f.extension("aaaa", "ada", "three")
	_, _, unused = f.put(third)
	f.same(unused, "two")

	got, err := f.c.Extensions.Extension(f.ctx, "ada", "aaaa")
	f.must(err)
	f.same(got, third)
	_, err = f.c.Extensions.Extension(f.ctx, "eve", "aaaa")
	f.code(err, fault.ExtensionNotFound)
	of, err := f.c.Extensions.Extensions(f.ctx, "ada")
	f.must(err)
	f.same(of, []profiles.Extension{third})
	all, err := f.c.Extensions.Extensions(f.ctx, "")
	f.must(err)
	f.same(all, []profiles.Extension{third, others})

	unused, err = f.c.Extensions.DeleteExtension(f.ctx, "ada", "aaaa", false)
	f.must(err)
	f.same(unused, "three")
	_, err = f.c.Extensions.DeleteExtension(f.ctx, "ada", "aaaa", true)
	f.code(err, fault.ExtensionNotFound)
}

// An extension that a snapshot of the user has is deleted only with force. The snapshot
// still lists it, until the snapshot is deleted.
func testExtensionsInUse(f *fixture) {
	s := f.session("s", "ada")
	snap := f.snapshot("snap", s)
	snap.Extensions = []profiles.PinnedExtension{{ID: "aaaa", SHA256: "old"}, {ID: "bbbb", SHA256: "two"}}
	_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: snap})
	f.must(err)
	pinned, err := f.c.Snapshots.SnapshotExtensions(f.ctx, "snap")
	f.must(err)
	f.same(pinned, snap.Extensions)
	for _, user := range []string{"ada", "bob"} {
		f.put(f.extension("aaaa", user, "one"))
	}
	_, err = f.c.Extensions.DeleteExtension(f.ctx, "ada", "aaaa", false)
	f.code(err, fault.ExtensionInUse)
	_, err = f.c.Extensions.DeleteExtension(f.ctx, "bob", "aaaa", false)
	f.must(err)
	unused, err := f.c.Extensions.DeleteExtension(f.ctx, "ada", "aaaa", true)
	f.must(err)
	f.same(unused, "one")
	f.put(f.extension("aaaa", "ada", "one"))
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, "snap")
	f.must(err)
	pinned, err = f.c.Snapshots.SnapshotExtensions(f.ctx, "snap")
	f.must(err)
	f.same(pinned, []profiles.PinnedExtension{})
	_, err = f.c.Extensions.DeleteExtension(f.ctx, "ada", "aaaa", false)
	f.must(err)
}

// packed returns the files of an extension as an upload has them.
func packed(body string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(body), 0, int64(len(body)))
}

// stored returns which files of extensions a catalogue has.
func (f *fixture) stored(c Catalogue) map[string]bool {
	f.Helper()
	all, err := c.Packed.ExtensionFiles(f.ctx)
	f.must(err)
	return all
}

// reads checks the files of an extension.
func (f *fixture) reads(c Catalogue, sha, want string) {
	f.Helper()
	var got bytes.Buffer
	f.must(c.Packed.PackedExtension(f.ctx, sha, &got))
	if got.String() != want {
		f.Errorf("the files of %s have %d bytes, want %d", sha, got.Len(), len(want))
	}
}

// The files of an extension are stored with its record, once for all users, and deleted with
// the last record that names them.
func testPackedExtensions(f *fixture) {
	large := strings.Repeat("\x00\xff0123456789ab", 250_000) // several rows
	put := func(e profiles.Extension, files *io.SectionReader) {
		f.Helper()
		_, _, _, err := f.c.Extensions.PutExtension(f.ctx, e, files)
		f.must(err)
	}
	ada, bob := f.extension("aaaa", "ada", "one"), f.extension("aaaa", "bob", "one")
	put(ada, packed(large))
	put(bob, packed("not stored again"))
	f.reads(f.c, "one", large)
	put(f.extension("bbbb", "ada", "two"), nil)
	f.same(f.stored(f.c), map[string]bool{"one": true, "two": false})
	f.code(f.c.Packed.PackedExtension(f.ctx, "two", io.Discard), fault.StoreFailed)
	f.code(f.c.Packed.PackedExtension(f.ctx, "three", io.Discard), fault.ExtensionNotFound)

	// Files that are kept elsewhere are added later, or by another upload of them.
	for _, sha := range []string{"two", "two", "one", "three"} {
		f.must(f.c.Packed.AddPackedExtension(f.ctx, sha, packed("second")))
	}
	f.reads(f.c, "two", "second")
	f.reads(f.c, "one", large)
	f.code(f.c.Packed.PackedExtension(f.ctx, "three", io.Discard), fault.ExtensionNotFound)
	put(f.extension("cccc", "ada", "four"), nil)
	put(f.extension("cccc", "ada", "four"), packed("fourth"))
	f.same(f.stored(f.c), map[string]bool{"one": true, "two": true, "four": true})

	// Of what w fails with, the code is kept.
	f.code(f.c.Packed.PackedExtension(f.ctx, "one", fullWriter{}), fault.StoreFull)
	f.reads(f.c, "one", large)

	put(f.extension("aaaa", "ada", "five"), packed("fifth")) // bob still has the first
	f.reads(f.c, "one", large)
	_, err := f.c.Extensions.DeleteExtension(f.ctx, "bob", "aaaa", false)
	f.must(err)
	f.same(f.stored(f.c), map[string]bool{"two": true, "four": true, "five": true})
	f.code(f.c.Packed.PackedExtension(f.ctx, "one", io.Discard), fault.ExtensionNotFound)
	put(f.extension("aaaa", "bob", "one"), nil)
	f.same(f.stored(f.c)["one"], false)

	// Files that no record names are removed, and no others.
	f.must(f.c.Packed.RemoveUnusedExtensions(f.ctx))
	put(f.extension("dddd", "ada", "three"), nil)
	f.same(f.stored(f.c), map[string]bool{"one": false, "two": true, "three": false, "four": true, "five": true})
}

// fullWriter is a file on a disk that is full.
type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, fault.New(fault.StoreFull, "test", "full") }
