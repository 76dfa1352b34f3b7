package snapshot

import (
	"iter"
	"path"

	"github.com/stasisd/stasis/fault"
)

// listing counts an archive's names against its limits.
type listing struct {
	limits  Limits
	entries int
	bytes   int // of the names
}

// add counts a name. Its error is irregular.
func (l *listing) add(name string) error {
	l.entries++
	l.bytes += len(name)
	switch {
	case l.entries > l.limits.Entries:
		return irregular("its archive holds more entries than allowed")
	case l.bytes > l.limits.Names:
		return irregular("its archive holds names of more bytes than allowed")
	}
	return nil
}

// tree counts names and the folders that they imply, each once.
type tree struct {
	listing
	known map[string]struct{} // "." from the start
}

// add counts a name and those of its folders that are not counted yet. Its error is
// irregular.
func (t *tree) add(name string) error {
	for ; ; name = path.Dir(name) {
		if _, there := t.known[name]; there {
			return nil
		}
		t.known[name] = struct{}{}
		if err := t.listing.add(name); err != nil {
			return err
		}
	}
}

// CheckNames checks the number and length of an archive's names. It refuses what
// [Vault.Unpack] would refuse. The error is save_failed. Zero limits mean the defaults.
func (l Limits) CheckNames(names iter.Seq[string]) error {
	const op = "snapshot.check_names"
	all := tree{listing: listing{limits: l.orDefault()}, known: map[string]struct{}{".": {}}}
	for name := range names {
		if err := all.add(name); err != nil {
			return fault.Wrap(err, fault.SaveFailed, op, "the environment has more files and folders, or longer names, than a restore accepts")
		}
	}
	return nil
}
