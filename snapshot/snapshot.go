// Package snapshot keeps durable bytes: immutable snapshots, each a document and a sealed
// archive.
//
// The package knows tar, zstd, age, hashes and locations; it does not know what a cookie
// or a Chrome is. Callers use [Vault], which packs, seals, verifies, commits and opens.
// [Documents] keeps agents' documents beside the snapshots. A [Store] holds the bytes of
// both. Its adapters are sub-packages, and each one passes the suite in
// snapshot/storetest.
package snapshot

import (
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"time"
)

// Mode is the kind of a snapshot.
type Mode string

const (
	Filesystem Mode = "filesystem" // Chrome was closed; only the archive exists
	Memory     Mode = "memory"     // Chrome stays parked in addition to the archive
)

// SchemaVersion is the version of manifests, of agents' documents, and of documents whose
// archive has no head. versionWithHead is that of documents whose archive has one.
const (
	SchemaVersion   = "1.0"
	versionWithHead = "1.1"
)

// Location says where a snapshot belongs. Owner and Session are path elements. Owner is
// 32 hex digits, the others match ^[a-z0-9_-]{1,128}$.
type Location struct {
	Owner   string
	Session string
	Scope   string // "agent" or "multiAgent"
	ScopeID string // "browser" for environments
}

// Entry is one file that goes into an archive.
type Entry struct {
	Name string      // slash-separated, relative, clean
	Path string      // file to read; empty when Data holds the bytes
	Data []byte      // in-memory content, when Path is empty
	Mode fs.FileMode // permission bits; a directory has fs.ModeDir
	// InTail: it comes after all other entries, and a restore may unpack it last. A folder is
	// never in the tail.
	InTail bool
}

// Draft is a snapshot to save.
type Draft struct {
	ID        string // UUIDv7
	Location  Location
	Mode      Mode
	CreatedAt time.Time
	Entries   []Entry
	// Facts are stored in the document unencrypted: versions, counts, sizes.
	Facts map[string]any
	// Private is stored in the document sealed: origins, tabs. It is JSON.
	Private json.RawMessage
	// AppData is stored in the document's appData, sealed: the notes of agents. It is JSON,
	// or nil for nothing.
	AppData json.RawMessage
}

// Snapshot is a saved snapshot, as its document describes it.
type Snapshot struct {
	ID        string
	Location  Location
	Mode      Mode
	CreatedAt time.Time
	Archive   Archive
	Facts     map[string]any  // numbers are float64, as encoding/json decodes them
	Private   json.RawMessage // nil unless opened with an identity
	AppData   json.RawMessage // as Private; nil also if there is none
	// Recipients are the public keys ("age1…") that the snapshot was sealed to.
	Recipients []string
	// Shared reports, after a Save, that an equal archive was already stored. A caller that
	// undoes the save must then leave the archive.
	Shared bool
}

// Archive is what a document binds of its archive.
type Archive struct {
	ID            string `json:"id"`             // keyed hash of the plaintext's SHA-256, hex
	PayloadSHA256 string `json:"payload_sha256"` // of the sealed payload without age's header, hex
	PayloadSize   int64  `json:"payload_size"`   // bytes
	StoredSize    int64  `json:"stored_size"`    // bytes, with age's header
	TarSHA256     string `json:"tar_sha256"`     // of the tar before compression, hex
	TarSize       int64  `json:"tar_size"`       // bytes
	Entries       int    `json:"entries"`        // tar entries
	Head          Head   `json:"head,omitzero"`  // zero: it has none
}

// Head is the beginning of an archive's tar that can be used before the rest has been read:
// all entries that are not [Entry.InTail], and the header of the next one.
type Head struct {
	TarSHA256 string `json:"tar_sha256"` // hex
	TarSize   int64  `json:"tar_size"`   // bytes
	Entries   int    `json:"entries"`
}

// newHead returns the head as a document has it.
func newHead(h head) Head {
	if h == (head{}) {
		return Head{}
	}
	return Head{TarSHA256: hex.EncodeToString(h.SHA256[:]), TarSize: h.Size, Entries: h.Entries}
}

// is reports whether a head that was read is this one.
func (h Head) is(read head) bool { return h == newHead(read) }

// Limits bound what an archive may unpack to.
type Limits struct {
	Entries int   // files, folders, and the folders that their names imply
	Bytes   int64 // sum of the files' sizes
	Names   int   // sum of the entries' names, in bytes; they are kept in memory
}
