package filter

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
)

// localStorage keeps the items of wanted storage keys. An item's key is "_", the storage
// key, a NUL and the script's key. Beside them are "META:" and "METAACCESS:" entries with
// the storage key (components/services/storage/dom_storage).
func (s *run) localStorage(ctx context.Context) error {
	if err := s.remove("Local Storage", func(name string) bool { return name == "leveldb" }); err != nil {
		return err
	}
	return s.levelDB(ctx, "Local Storage/leveldb", func(key, _ []byte) bool {
		switch at := string(key); {
		case strings.HasPrefix(at, "METAACCESS:"):
			return s.selection.HasKey(at[len("METAACCESS:"):])
		case strings.HasPrefix(at, "META:"):
			return s.selection.HasKey(at[len("META:"):])
		case strings.HasPrefix(at, "_"):
			owner, _, ok := strings.Cut(at[1:], "\x00")
			return ok && s.selection.HasKey(owner)
		default:
			return at == "VERSION"
		}
	})
}

// fileSystem keeps the list entries of the origin private file systems that still exist
// (storage/browser/file_system/sandbox_origin_database.cc).
func (s *run) fileSystem(ctx context.Context) error {
	return s.levelDB(ctx, "File System/Origins", func(key, folder []byte) bool {
		return !strings.HasPrefix(string(key), "ORIGIN:") || s.exists("File System/"+string(folder))
	})
}

const workers = "Service Worker/Database"

// workers keeps the registrations of wanted storage keys, and the entries that belong to
// them by the IDs of registration and version
// (content/browser/service_worker/service_worker_database.cc). The scripts are in a cache
// that is indexed by these IDs only. Unwanted scripts stay in it, unreachable, unless no
// registration is left.
func (s *run) workers(ctx context.Context) error {
	if err := s.remove("Service Worker", func(name string) bool {
		return name == "Database" || name == "ScriptCache" || name == "CacheStorage"
	}); err != nil {
		return err
	}
	registrations, versions := map[string]bool{}, map[string]bool{}
	// There are two passes, because the registrations determine the other wanted entries.
	if err := s.levelDB(ctx, workers, func(key, value []byte) bool {
		if rest, ok := strings.CutPrefix(string(key), "REG:"); ok {
			owner, id, _ := strings.Cut(rest, "\x00")
			if !s.selection.HasKey(owner) {
				return false
			}
			registrations[id] = true
			versions[version(value)] = true
		}
		return true
	}); err != nil {
		return err
	}
	if len(registrations) == 0 {
		return s.remove("Service Worker", func(name string) bool { return name == "CacheStorage" })
	}
	return s.levelDB(ctx, workers, func(key, _ []byte) bool {
		kind, rest, ok := bytes.Cut(key, []byte(":"))
		id, _, _ := bytes.Cut(rest, []byte("\x00"))
		switch string(kind) {
		case "REG":
			return true
		case "INITDATA_UNIQUE_ORIGIN":
			return s.selection.HasKey(string(rest))
		case "RES":
			return versions[string(id)]
		case "REGID_TO_ORIGIN", "REG_USER_DATA":
			return registrations[string(id)]
		case "REG_HAS_USER_DATA":
			_, id, _ := bytes.Cut(rest, []byte("\x00"))
			return registrations[string(id)]
		default:
			return !ok || bytes.HasPrefix(kind, []byte("INITDATA_"))
		}
	})
}

// version returns the ID of a registration's version: field 4 of its message.
func version(message []byte) string {
	for len(message) > 0 {
		tag, w := binary.Uvarint(message)
		if w <= 0 {
			return ""
		}
		message = message[w:]
		n, w := binary.Uvarint(message)
		if w <= 0 {
			return ""
		}
		message = message[w:]
		switch tag & 7 {
		case 0:
			if tag>>3 == 4 {
				return decimal(n)
			}
		case 2:
			if n > uint64(len(message)) {
				return ""
			}
			message = message[n:]
		default:
			return ""
		}
	}
	return ""
}
