// Package snapshot keeps durable bytes: immutable snapshots, each a document
// and a sealed archive.
//
// The package knows tar, zstd, age, hashes and locations; it does not know
// what a cookie or a Chrome is. [Vault] is what callers use: it packs, seals,
// verifies, commits and opens. [Documents] are what agents keep beside it. A
// [Store] is where the bytes of both are; its adapters are sub-packages, and
// snapshot/storetest is the suite that every one of them passes.
package snapshot

import (
	"encoding/json"
	"io/fs"
	"time"
)

// Mode is the kind of a snapshot.
type Mode string

const (
	Filesystem Mode = "filesystem" // Chrome was closed; the archive is all there is
	Memory     Mode = "memory"     // Chrome stays parked beside the archive
)

// SchemaVersion is the version of the documents that this package writes.
const SchemaVersion = "1.0"

// Location says where a snapshot belongs. Owner and Session are path
// elements: Owner is 32 hex digits, the others match ^[a-z0-9_-]{1,128}$.
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
}

// Draft is a snapshot that is to be saved.
type Draft struct {
	ID        string // UUIDv7
	Location  Location
	Mode      Mode
	CreatedAt time.Time
	Entries   []Entry
	// Facts go into the document in plain: versions, counts, sizes.
	Facts map[string]any
	// Private goes into the document sealed: origins, tabs. It is JSON.
	Private json.RawMessage
	// AppData goes into the document's appData, sealed: what agents noted. It is
	// JSON; nil is nothing.
	AppData json.RawMessage
}

// Snapshot is a saved snapshot, as its document tells.
type Snapshot struct {
	ID        string
	Location  Location
	Mode      Mode
	CreatedAt time.Time
	Archive   Archive
	Facts     map[string]any  // numbers are float64, as JSON gives them
	Private   json.RawMessage // nil unless opened with an identity
	AppData   json.RawMessage // as Private; nil also where there is none
	// Recipients are the public keys ("age1…") that it was sealed to.
	Recipients []string
	// Shared tells, after a Save, that an equal archive was stored already: who
	// takes this save back must leave the archive.
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
}

// Limits bound what an archive may unpack to.
type Limits struct {
	Entries int   // files, folders, and the folders that their names imply
	Bytes   int64 // sum of the files' sizes
	Names   int   // sum of the entries' names, in bytes: they are kept in memory
}
