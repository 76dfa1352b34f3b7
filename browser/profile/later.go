package profile

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// Unpacking is the folder of the user data directory with the files of an environment that are
// unpacked while its Chrome runs already ([Later]). While it exists, the environment is not
// complete, and [Select] refuses it.
const Unpacking = "Unpacking"

// laterFrom is from how many bytes on those files are worth it. A restore unpacks less in a
// few milliseconds.
const laterFrom = 4 << 20

// Later reports whether Chrome can be given a file of an archive after it has got the rest of
// the environment: an entry of the Cache API. Chrome reads it only after the index of the
// caches, which has a gate until then.
func Later(name string) bool {
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
// by their paths in it.
func CacheFolders(userDataDir fs.FS, profile string) ([]string, error) {
	var folders []string
	for _, pattern := range []string{"Service Worker/" + cacheStorage + "/*", "WebStorage/*/" + cacheStorage} {
		found, err := fs.Glob(userDataDir, path.Join(profile, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			folders = append(folders, strings.TrimPrefix(name, profile+"/"))
		}
	}
	return folders, nil
}

// markLater marks the files that follow all others in an archive, if they are large.
func markLater(files []File) {
	var size int64
	for _, f := range files {
		if Later(f.Name) {
			size += f.Size
		}
	}
	for i, f := range files {
		files[i].Later = size >= laterFrom && Later(f.Name)
	}
}

// ErrIncomplete is the cause of the error of [Select] and [UseDefaultFolder] for an environment
// whose last files were not unpacked.
var ErrIncomplete = errors.New("the environment is not complete")

// checkComplete returns an error if a part of the environment is not in its profile yet.
func checkComplete(userDataDir string) error {
	_, err := os.Lstat(filepath.Join(userDataDir, Unpacking))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.Wrap(ErrIncomplete, fault.SaveFailed, "profile.select",
		"the session ended before its caches were restored, so it cannot be saved; the snapshot that it was restored from is unchanged")
}
