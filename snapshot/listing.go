package snapshot

import (
	"iter"
	"path"

	"github.com/stasisd/stasis/fault"
)

// listing counts what an archive lists against its limits.
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

// Lists refuses the names of an archive that [Vault.Unpack] would refuse for how
// many or how long they are, or how deep. The error is save_failed. Limits left
// out are the defaults.
func (l Limits) Lists(names iter.Seq[string]) error {
	const op = "snapshot.lists"
	all := listing{limits: l.orDefault()}
	known := map[string]struct{}{".": {}}
	for name := range names {
		if err := checkName(name); err == errTooDeep {
			return fault.Wrap(err, fault.SaveFailed, op, "the environment has a folder that is deeper than a restore takes")
		}
		for at := name; ; at = path.Dir(at) {
			if _, there := known[at]; there {
				break
			}
			known[at] = struct{}{}
			if err := all.add(at); err != nil {
				return fault.Wrap(err, fault.SaveFailed, op, "the environment has more files and folders, or longer names, than a restore takes")
			}
		}
	}
	return nil
}
