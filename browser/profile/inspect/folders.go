package inspect

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/state"
)

const (
	serviceWorkers = "Service Worker/Database"
	cacheStorage   = "Service Worker/CacheStorage"
	fileSystem     = "File System"
)

// serviceWorkers counts registrations. Their keys are "REG:", the storage key, a NUL and
// an ID (content/browser/service_worker).
func (s *survey) serviceWorkers() {
	if !s.exists(serviceWorkers) {
		return
	}
	db, err := leveldb.Read(s.ctx, s.fsys, serviceWorkers, func(key []byte) bool { return strings.HasPrefix(string(key), "REG:") }, false)
	if err != nil {
		s.add(state.Holding{Component: state.ComponentServiceWorkers, Uncounted: err.Error()})
		return
	}
	byOrigin := map[string]int{}
	for key := range db.Entries {
		origin, _, _ := strings.Cut(strings.TrimPrefix(key, "REG:"), "\x00")
		byOrigin[origin]++
	}
	s.counts(state.ComponentServiceWorkers, byOrigin, db.Damage, "")
}

// caches counts the entries of the Cache API. Each origin or bucket has a folder with an
// index. In it, each cache has a folder, in which every entry is a file
// (net/disk_cache/simple).
func (s *survey) caches() {
	for _, name := range s.names(cacheStorage) {
		s.cache(path.Join(cacheStorage, name), "")
	}
	for id, origin := range s.buckets() {
		if dir := path.Join("WebStorage", id, "CacheStorage"); s.exists(dir) {
			s.cache(dir, origin)
		}
	}
}

func (s *survey) cache(dir, origin string) {
	h := state.Holding{Component: state.ComponentCacheStorage, Origin: origin}
	index, err := s.read(path.Join(dir, "index.txt"))
	if err != nil {
		h.Damage = "the index of an origin's caches is missing"
		s.add(h)
		return
	}
	named, folders, err := cacheIndex(index)
	if err != nil {
		h.Damage = "the index of an origin's caches is damaged"
		s.add(h)
		return
	}
	if origin == "" {
		h.Origin = named
	}
	for _, folder := range folders {
		if s.timeUp() {
			break
		}
		if !s.exists(path.Join(dir, folder)) {
			h.Damage = "a cache is missing"
		}
		for _, file := range s.names(path.Join(dir, folder)) {
			switch {
			case s.timeUp(), !strings.HasSuffix(file, "_0"):
			case s.validEntry(path.Join(dir, folder, file)):
				h.Items++
			default:
				h.Damage = "a cache entry is damaged"
			}
		}
	}
	s.add(h)
}

// cacheIndex decodes an index of caches, a protobuf message
// (content/browser/cache_storage/cache_storage.proto). Field 3 is the storage key; each
// field 1 is a cache, whose field 2 names its folder.
func cacheIndex(b []byte) (storageKey string, folders []string, err error) {
	err = fields(b, func(n uint64, data []byte) error {
		switch n {
		case 1:
			return fields(data, func(n uint64, data []byte) error {
				if n == 2 {
					if len(folders) == maxCaches || !fs.ValidPath(string(data)) {
						return errMalformed
					}
					folders = append(folders, string(data))
				}
				return nil
			})
		case 3:
			storageKey = string(data)
		}
		return nil
	})
	return storageKey, folders, err
}

// maxCaches bounds the caches of one origin.
const maxCaches = 10_000

var errMalformed = errors.New("malformed")

// fields calls do with the byte fields of a protobuf message and skips its numbers.
func fields(b []byte, do func(n uint64, data []byte) error) error {
	for len(b) > 0 {
		tag, w := binary.Uvarint(b)
		if w <= 0 {
			return errMalformed
		}
		b = b[w:]
		n, w := binary.Uvarint(b)
		switch tag & 7 {
		case 0:
			if w <= 0 {
				return errMalformed
			}
			b = b[w:]
		case 2:
			if w <= 0 || n > uint64(len(b)-w) {
				return errMalformed
			}
			if err := do(tag>>3, b[w:w+int(n)]); err != nil {
				return err
			}
			b = b[w+int(n):]
		default:
			return errMalformed
		}
	}
	return nil
}

// These are the numbers at the start and the end of a cache entry's file.
const (
	entryMagic    = 0xfcfb6d1ba7725c30
	entryEndMagic = 0xf4fa6f45970d41d8
	entryEndSize  = 24
)

// validEntry reports whether a cache entry's file starts and ends correctly. The content
// has a checksum that only Chrome checks.
func (s *survey) validEntry(name string) bool {
	f, err := s.fsys.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	in, ok := f.(io.ReaderAt)
	info, err := f.Stat()
	if err != nil || !ok || !info.Mode().IsRegular() || info.Size() < 2*entryEndSize {
		return false
	}
	var b [8]byte
	for offset, magic := range map[int64]uint64{0: entryMagic, info.Size() - entryEndSize: entryEndMagic} {
		if _, err := in.ReadAt(b[:], offset); err != nil || binary.LittleEndian.Uint64(b[:]) != magic {
			return false
		}
	}
	return true
}

// files counts the files of the origin private file system (storage/browser/file_system).
// Each origin has a folder of numbered files, and a LevelDB with their names.
func (s *survey) files() {
	if s.exists(path.Join(fileSystem, "Origins")) {
		const prefix = "ORIGIN:"
		db, err := leveldb.Read(s.ctx, s.fsys, path.Join(fileSystem, "Origins"), func(key []byte) bool {
			return strings.HasPrefix(string(key), prefix)
		}, true)
		if err != nil || db.Damage != "" {
			s.add(state.Holding{Component: state.ComponentFileSystem, Damage: db.Damage, Uncounted: errorText(err)})
		}
		for key, folder := range db.Entries {
			if fs.ValidPath(string(folder)) && !s.timeUp() {
				s.filesOf(path.Join(fileSystem, string(folder)), originOf(strings.TrimPrefix(key, prefix)))
			}
		}
	}
	for id, origin := range s.buckets() {
		s.filesOf(path.Join("WebStorage", id, "FileSystem"), origin)
	}
}

func (s *survey) filesOf(dir, origin string) {
	dir = path.Join(dir, "t") // "temporary" storage, which contains the OPFS
	if !s.exists(dir) {
		return
	}
	h := state.Holding{Component: state.ComponentFileSystem, Origin: origin}
	for _, folder := range s.names(dir) {
		if len(folder) == 2 { // folders with two digits contain files; beside them are the database and a counter
			h.Items += len(s.names(path.Join(dir, folder)))
		}
	}
	// A file without a name in the database cannot be opened, so damage of the database
	// counts.
	db, err := leveldb.Read(s.ctx, s.fsys, path.Join(dir, "Paths"), func(key []byte) bool { return strings.HasPrefix(string(key), "CHILD_OF:") }, false)
	h.Damage, h.Uncounted = db.Damage, errorText(err)
	s.add(h)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// maxFile bounds a file that is read into memory, in bytes.
const maxFile = 64 << 20

// read reads a regular file of the profile into memory.
func (s *survey) read(name string) ([]byte, error) {
	f, err := s.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(f)
}
