package profilestest

import (
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
	is, fresh, unused, err := f.c.Extensions.PutExtension(f.ctx, e)
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
