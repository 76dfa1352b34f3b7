package inspect

import (
	"context"
	"os"
	"path"
	"strings"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/fault"
)

// Stores lists the folders of a profile in which every entry belongs to one storage key,
// except the databases that list the entries.
var Stores = []string{"IndexedDB", "Service Worker/CacheStorage", "File System", "WebStorage"}

// Owners returns the storage keys that own the entries of the profile's [Stores], by the
// entry's name relative to the profile's folder. An entry that is not in the map has no
// known owner.
func Owners(ctx context.Context, dir string) (map[string]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, "inspect.owners", "the profile cannot be read")
	}
	defer func() { _ = root.Close() }() // only a handle
	s := survey{ctx: ctx, root: root, fsys: plainFiles{root.FS()}, dir: dir}
	owners := map[string]string{}
	for _, name := range s.names("IndexedDB") {
		for _, suffix := range []string{".indexeddb.leveldb", ".indexeddb.blob"} {
			if id, known := strings.CutSuffix(name, suffix); known {
				owners[path.Join("IndexedDB", name)] = originOf(id)
			}
		}
	}
	for _, name := range s.names(cacheStorage) {
		index, err := s.read(path.Join(cacheStorage, name, "index.txt"))
		if err != nil {
			continue
		}
		if key, _, err := cacheIndex(index); err == nil {
			owners[path.Join(cacheStorage, name)] = key
		}
	}
	const prefix = "ORIGIN:"
	files, err := leveldb.Read(ctx, s.fsys, path.Join(fileSystem, "Origins"), func(key []byte) bool {
		return strings.HasPrefix(string(key), prefix)
	}, true)
	if err == nil {
		for key, folder := range files.Entries {
			owners[path.Join(fileSystem, string(folder))] = originOf(strings.TrimPrefix(key, prefix))
		}
	}
	for id, key := range s.buckets() {
		owners[path.Join("WebStorage", id)] = key
	}
	return owners, nil
}
