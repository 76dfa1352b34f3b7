// Package backup writes and reads backups of a data directory. A backup consists of files
// and a manifest with the length and hash of each. This package does not know what the
// files mean.
//
// A backup is a folder, or one tar.zst file with the same content. It is written under
// NAME.partial and gets its name only when it is complete and durable. A backup that was
// killed leaves NAME.partial, which the next backup of that name removes. docs/format.md
// describes the bytes.
package backup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
)

// The names in a backup.
const (
	ManifestFile = "manifest.json"
	Database     = "stasis.db"  // the catalogue
	Keys         = "keys"       // folder of the keys
	Extensions   = "extensions" // folder of the files of uploaded extensions
	Snapshots    = "snapshots"  // folder of the archives and documents
)

// Format and FormatVersion name the format of a backup in its manifest.
const (
	Format        = "stasis-backup"
	FormatVersion = 1
)

// maxManifest limits a manifest, in bytes; one file takes less than 400 of them.
const maxManifest = 256 << 20

// Manifest describes a backup.
type Manifest struct {
	Format        string    `json:"format"`
	FormatVersion int       `json:"format_version"`
	StasisVersion string    `json:"stasis_version"` // version that wrote the backup
	CreatedAt     time.Time `json:"created_at"`
	Keys          bool      `json:"keys"`      // the backup contains the identity and the archive key
	Archives      bool      `json:"archives"`  // the backup contains the archives and documents
	Store         string    `json:"store"`     // the store that had them
	Snapshots     int       `json:"snapshots"` // in the catalogue
	Live          int       `json:"live_sessions"`
	// Missing lists, as sentences, what the backup lacks and a restore needs.
	Missing []string `json:"missing"`
	Files   []File   `json:"files"` // all files except the manifest, by path
}

// File is one file of a backup.
type File struct {
	Path   string `json:"path"` // below the backup, with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Parse reads a manifest. Errors: archive_damaged if it is not a manifest, unsupported if
// its format is newer.
func Parse(r io.Reader) (Manifest, error) {
	const op = "backup.manifest"
	raw, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return Manifest{}, damaged(ManifestFile, "cannot be read", err)
	}
	if len(raw) > maxManifest {
		return Manifest{}, damaged(ManifestFile, "is too large", nil)
	}
	var m Manifest
	var what struct {
		Format  string `json:"format"`
		Version int    `json:"format_version"`
	}
	if err := json.Unmarshal(raw, &what); err != nil || what.Format != Format {
		return m, damaged(ManifestFile, "is not the manifest of a Stasis backup", err)
	}
	if what.Version != FormatVersion {
		return m, fault.New(fault.Unsupported, op, "the backup has format version %d, and this binary reads %d; use the Stasis that wrote it, or a newer one", what.Version, FormatVersion)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, damaged(ManifestFile, "does not match its format version", err)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		sum, err := hex.DecodeString(f.SHA256)
		if err != nil || len(sum) != 32 || f.Size < 0 || !isBackupPath(f.Path) || seen[f.Path] {
			return Manifest{}, damaged(ManifestFile, "lists a file that no backup may have: "+printable(f.Path), nil)
		}
		seen[f.Path] = true
	}
	if !seen[Database] {
		return Manifest{}, damaged(ManifestFile, "does not list "+Database, nil)
	}
	return m, nil
}

// isBackupPath reports whether a backup may contain a file of that path.
func isBackupPath(name string) bool {
	if name == Database {
		return true
	}
	folder, rest, below := strings.Cut(name, "/")
	switch folder {
	case Keys:
		return below && !strings.Contains(rest, "/") && isKey(rest)
	case Extensions, Snapshots:
		return below && path.Clean(name) == name && filepath.IsLocal(name) && !strings.ContainsRune(name, 0)
	}
	return false
}

func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name[:min(len(name), 200)])
}

// damaged returns an error that names the damaged file of a backup.
func damaged(name, what string, cause error) error {
	message := "the backup is damaged: " + printable(name) + " " + what
	if cause == nil {
		return fault.New(fault.ArchiveDamaged, "backup.read", "%s", message)
	}
	return fault.Wrap(cause, fault.ArchiveDamaged, "backup.read", message)
}
