package inspect

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
)

// LocalStorage and SessionStorage are the LevelDB databases of a profile in which
// Chrome keeps these, as folders of the profile.
const (
	LocalStorage   = localstorage.Folder
	SessionStorage = sessionstorage.Folder
)

// Generation tells one LevelDB database from another that was begun in its
// place. Its file CURRENT names the list of files: Chrome leaves it as it is
// while it goes on with a database, or writes one with a higher number; one that
// it throws away and begins anew starts from the first number, later. The zero
// value is that of no database.
type Generation struct {
	list int // the number of its list of files
	at   time.Time
}

// maxCurrent bounds the file CURRENT, in bytes: it holds one file name.
const maxCurrent = 64

// GenerationOf looks at a database in the folder of a profile, which Chrome may
// have open.
func GenerationOf(profile, database string) Generation {
	root, err := os.OpenRoot(profile)
	if err != nil {
		return Generation{}
	}
	defer func() { _ = root.Close() }() // only a handle
	file, err := plainFiles{root.FS()}.Open(database + "/CURRENT")
	if err != nil {
		return Generation{}
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil || info.Size() > maxCurrent {
		return Generation{}
	}
	raw := make([]byte, info.Size())
	if _, err := file.Read(raw); err != nil {
		return Generation{}
	}
	number, found := strings.CutPrefix(strings.TrimSuffix(string(raw), "\n"), "MANIFEST-")
	list, err := strconv.Atoi(number)
	if !found || err != nil {
		return Generation{}
	}
	return Generation{list: list, at: info.ModTime()}
}

// Continues reports whether this is still the database that an earlier look
// found.
func (g Generation) Continues(earlier Generation) bool {
	return earlier.list > 0 && (g.list > earlier.list || g.list == earlier.list && g.at.Equal(earlier.at))
}
