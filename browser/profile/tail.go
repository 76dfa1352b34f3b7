package profile

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// Unpacking is the folder of the user data directory with the tail of an environment, while
// that is unpacked and its Chrome runs already. While the folder exists, the environment is not
// complete, and [Select] refuses it.
const Unpacking = "Unpacking"

// minTail is the total size in bytes from which a tail is worth it. Less takes a few
// milliseconds to unpack.
const minTail = 4 << 20

// InTail reports whether a file of an archive may follow when Chrome already has the rest of the
// environment. Only entries of the Cache API may: Chrome reads their index first, and a gate
// holds that back.
func InTail(name string) bool {
	element := strings.Split(name, "/")
	switch {
	case element[0] != Default || len(element) < 6:
		return false
	case element[1] == "Service Worker": // CacheStorage/ORIGIN/CACHE/FILE
		return element[2] == cacheStorage
	default: // WebStorage/BUCKET/CacheStorage/CACHE/FILE
		return element[1] == "WebStorage" && element[3] == cacheStorage
	}
}

const cacheStorage = "CacheStorage"

// CacheFolders lists the folders of the Cache API in a profile, one for each origin and bucket,
// by their paths in it. A folder that cannot be read is an error.
func CacheFolders(userDataDir fs.FS, profile string) ([]string, error) {
	const ofOrigins, ofBuckets = "Service Worker/" + cacheStorage, "WebStorage"
	var folders []string
	origins, err := subfolders(userDataDir, path.Join(profile, ofOrigins))
	for _, origin := range origins {
		folders = append(folders, path.Join(ofOrigins, origin))
	}
	if err != nil {
		return nil, err
	}
	buckets, err := subfolders(userDataDir, path.Join(profile, ofBuckets))
	for _, bucket := range buckets {
		kinds, inBucket := subfolders(userDataDir, path.Join(profile, ofBuckets, bucket))
		if slices.Contains(kinds, cacheStorage) {
			folders = append(folders, path.Join(ofBuckets, bucket, cacheStorage))
		}
		err = errors.Join(err, inBucket)
	}
	return folders, err
}

// subfolders lists the folders in a folder, which may be missing.
func subfolders(files fs.FS, folder string) ([]string, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// markTail sets InTail of the files that may be in a tail, if these have at least minTail
// bytes.
func markTail(files []File) {
	var size int64
	for _, f := range files {
		if InTail(f.Name) {
			size += f.Size
		}
	}
	for i, f := range files {
		files[i].InTail = size >= minTail && InTail(f.Name)
	}
}

// ErrIncomplete is the cause of the error of [Select] and [UseDefaultFolder] for an environment
// whose tail is not in place.
var ErrIncomplete = errors.New("the environment is not complete")

// checkComplete returns an error if the tail of the environment is not in place.
func checkComplete(userDataDir, op string) error {
	_, err := os.Lstat(filepath.Join(userDataDir, Unpacking))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.Wrap(ErrIncomplete, fault.SaveFailed, op,
		"the caches of the environment were never restored, so it cannot be saved; restore the snapshot again")
}
