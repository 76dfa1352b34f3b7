package inspect

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
)

// LocalStorage and SessionStorage are the folders of a profile that contain the LevelDB
// databases of these two kinds.
const (
	LocalStorage   = localstorage.Folder
	SessionStorage = sessionstorage.Folder
)

// Generation identifies a LevelDB database, to detect that Chrome has replaced it by a
// new one. The file CURRENT names the list of files. While Chrome keeps using a database,
// it leaves CURRENT unchanged or writes a higher number. If it discards the database and
// creates it again, the number starts from the first one, at a later time. The zero value
// means that there is no database.
type Generation struct {
	list int // number of its list of files
	at   time.Time
}

// maxCurrent bounds the file CURRENT, which contains one file name, in bytes.
const maxCurrent = 64

// GenerationOf reads the generation of a database in the folder of a profile. Chrome may
// have the database open.
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

// Continues reports whether this is still the database of an earlier reading.
func (g Generation) Continues(earlier Generation) bool {
	return earlier.list > 0 && (g.list > earlier.list || g.list == earlier.list && g.at.Equal(earlier.at))
}
