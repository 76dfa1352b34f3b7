package snapshot

import (
	"regexp"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// The forms that a path element may have. Nothing else becomes a path.
var (
	ownerForm    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	elementForm  = regexp.MustCompile(`^[a-z0-9_-]{1,128}$`)
	snapshotForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	documentForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	digestForm   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

const (
	documentPrefix = "snapshot_"
	documentSuffix = ".json"

	latestName   = "snapshot_latest.json"
	manifestName = "manifest.json"
	historyName  = "immutable_history"
)

// Key names one object, or one folder of objects, in a [Store]. Only the functions of
// this file create keys, and they check every element first. The zero Key names nothing
// and every store refuses it.
type Key struct{ path string }

// String returns the slash-separated path below the store's root.
func (k Key) String() string { return k.path }

// Check checks that the location can be a path. Owner is 32 hex digits, Scope is "agent"
// or "multiAgent", the others match ^[a-z0-9_-]{1,128}$. The error is invalid_field and
// does not repeat the value.
func (l Location) Check() error {
	const op = "snapshot.location"
	switch {
	case !ownerForm.MatchString(l.Owner):
		return fault.New(fault.InvalidField, op, "owner: must be 32 hex digits")
	case !elementForm.MatchString(l.Session):
		return fault.New(fault.InvalidField, op, "session_id: must match %s", elementForm)
	case l.Scope != "agent" && l.Scope != "multiAgent":
		return fault.New(fault.InvalidField, op, "scope: must be one of agent, multiAgent")
	case !elementForm.MatchString(l.ScopeID):
		return fault.New(fault.InvalidField, op, "scope_id: must match %s", elementForm)
	}
	return nil
}

// CheckID checks that id is a snapshot ID: a UUIDv7 in lower case.
func CheckID(id string) error {
	if !snapshotForm.MatchString(id) {
		return fault.New(fault.InvalidField, "snapshot.id", "snapshot_id: must be a UUIDv7 in lower case")
	}
	return nil
}

// CheckDocumentID checks that id can be the ID of an agent's document: a UUID of any version
// in lower case.
func CheckDocumentID(id string) error {
	if !documentForm.MatchString(id) {
		return fault.New(fault.InvalidField, "snapshot.id", "snapshot_id: must be a UUID in lower case")
	}
	return nil
}

// checkID checks that id can be the ID of a document in the location.
func (l Location) checkID(id string) error {
	if reserved(l.ScopeID) {
		return CheckID(id)
	}
	return CheckDocumentID(id)
}

func (l Location) folder() string {
	return l.scopesFolder().path + "/" + l.Scope + "/" + l.ScopeID + "/snapshots"
}

// scopesFolder names the folder with all scopes of the location's session.
func (l Location) scopesFolder() Key {
	return Key{usersFolder.path + "/" + l.Owner + "/sessions/" + l.Session + "/scopes"}
}

func (l Location) key(name string) (Key, error) {
	if err := l.Check(); err != nil {
		return Key{}, err
	}
	return Key{l.folder() + "/" + name}, nil
}

// LatestKey names the location's snapshot_latest.json.
func (l Location) LatestKey() (Key, error) { return l.key(latestName) }

// ManifestKey names the location's manifest.json.
func (l Location) ManifestKey() (Key, error) { return l.key(manifestName) }

// HistoryFolder names the folder of the location's immutable documents.
func (l Location) HistoryFolder() (Key, error) { return l.key(historyName) }

// DocumentKey names the immutable document of one snapshot.
func (l Location) DocumentKey(id string) (Key, error) {
	if err := l.checkID(id); err != nil {
		return Key{}, err
	}
	return l.key(historyName + "/" + documentPrefix + id + documentSuffix)
}

// documentID returns the snapshot ID in the file name of one of the location's documents; ok
// is false for other names.
func (l Location) documentID(name string) (id string, ok bool) {
	id = strings.TrimSuffix(strings.TrimPrefix(name, documentPrefix), documentSuffix)
	return id, documentPrefix+id+documentSuffix == name && l.checkID(id) == nil
}

// ArchiveKey names an archive by its ID, 64 hex digits.
func ArchiveKey(id string) (Key, error) {
	if !digestForm.MatchString(id) {
		return Key{}, fault.New(fault.InvalidField, "snapshot.archive", "archive: the ID must be 64 hex digits")
	}
	return Key{archives + "/" + id}, nil
}

// ArchiveFolder names the folder of all archives.
func ArchiveFolder() Key { return Key{archives} }

const archives = "archives"

// environments is the scope ID of locations that hold only Stasis's own snapshots. Other
// locations may hold agents' documents.
const environments = "browser"
