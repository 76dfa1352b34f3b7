package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The columns that must be whole.
const (
	filesystem     = "filesystem"
	otherDirectory = "other data directory"
)

// The columns of two engines.
const (
	toShell  = "chrome → shell"
	toChrome = "shell → chrome"
)

// impossible are the kinds that our filesystem way cannot carry, with the
// reason and how it was seen.
var impossible = map[string]string{
	"… titles of the pages in them": "Chrome does not read the titles of other pages than the open one back from its session files: " +
		"a plain Chrome with --restore-last-session shows none either. The state document has them.",
	"sessionStorage: a lone surrogate in a key": "Chrome writes the keys of sessionStorage in UTF-8, which has no lone surrogates " +
		"(Blink's CachedStorageArea); values it writes in UTF-16. CDP cannot say such a key either.",
}

// table is the whole outcome.
type table struct {
	rows    []kind
	columns []column
	chrome  string   // product and version
	names   []string // client libraries with their versions
}

// clients reads the versions of the client libraries.
func (t *table) clients(dir string) error {
	for _, name := range []string{"playwright-core", "puppeteer-core"} {
		raw, err := os.ReadFile(filepath.Join(dir, "node_modules", name, "package.json"))
		if err != nil {
			return err
		}
		var about struct{ Version string }
		if err := json.Unmarshal(raw, &about); err != nil {
			return err
		}
		t.names = append(t.names, name+" "+about.Version)
	}
	return nil
}

// intro stands before the table; it takes the versions of Chrome and clients.
const intro = `# What survives, and how

` + "`make fidelity`" + ` writes this page. It tries every cell: each way begins with a copy of the same user data directory, every
kind of state is made in its browser, that browser ends, another one comes back with what was kept, and the same steps
read the state again. The pages are those of a site under two names that are foreign to each other, one framed in the other.

| a cell says | when what was read |
|---|---|
| ` + kept + ` | is the same to the letter |
| ` + changed + ` | is there, and differs |
| ` + lost + ` | is gone |
| ` + absent + ` | was not there even before leaving |

Ways: *` + filesystem + `* is a save as files, restored by the same daemon; *` + otherDirectory + `* is its archive,
exported and imported by another daemon, with other keys, at another path and with other users for its Chromes; *memory*
comes back from the frozen Chrome; *portable* is Playwright's format with IndexedDB, exported by one daemon and imported
by another; *` + toShell + `* and *` + toChrome + `* are saves as files in one engine that come back in the other. What the
shell does not use is lost to its pages, and not to the environment. Each library is used as its documentation shows, and
storageState is asked for all that it offers (indexedDB, opfs, credentials). What pages are told (overrides) is named at the
first start and never again; a policy for permissions is given to ours alone, for the libraries have none. The libraries are
given the extension at both starts.

Scroll positions and forms reach Chrome's session files up to a second after they change in the tab in front, and up to
five in others. A filesystem save has Chrome write them at once; the copy beside a frozen Chrome lacks what changed since.

Tried with %s and %s.

`

// markdown is the document.
func (t *table) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, intro, t.chrome, strings.Join(t.names, ", "))
	head, line := "| kind of state |", "|---|"
	for _, c := range t.columns {
		head += " " + c.name + " |"
		line += "---|"
	}
	fmt.Fprintln(&out, head)
	fmt.Fprintln(&out, line)
	var n notes
	for i, k := range t.rows {
		name := k.name
		name += n.mark(impossible[k.name])
		fmt.Fprintf(&out, "| %s |", name)
		for _, c := range t.columns {
			fmt.Fprintf(&out, " %s%s |", c.cells[i].says, n.mark(c.cells[i].why))
		}
		fmt.Fprintln(&out)
	}
	fmt.Fprintln(&out)
	for i, note := range n {
		fmt.Fprintf(&out, "%d. %s\n", i+1, note)
	}
	return out.String()
}

// notes are what cells say more of; those that say the same share one.
type notes []string

// mark is the note's number, as it stands in a cell; "" without a note.
func (n *notes) mark(note string) string {
	note = strings.Join(strings.Fields(note), " ")
	if note == "" {
		return ""
	}
	at := slices.Index(*n, note)
	if at < 0 {
		at = len(*n)
		*n = append(*n, note)
	}
	return fmt.Sprintf(" [%d]", at+1)
}

// ours begins the names of our own columns.
const ours = "Stasis, "

// verdict is an error if ours is not whole but for what is impossible, or if
// another's way is better in a row.
func (t *table) verdict() error {
	var why []error
	for i, k := range t.rows {
		_, excused := impossible[k.name]
		better := slices.IndexFunc(t.columns, func(c column) bool {
			return !strings.HasPrefix(c.name, ours) && c.cells[i].says == kept
		})
		for _, c := range t.columns {
			if c.name != ours+filesystem && c.name != ours+otherDirectory || c.cells[i].says == kept {
				continue
			}
			if !excused {
				why = append(why, fmt.Errorf("%s: %s: %s %s", c.name, k.name, c.cells[i].says, c.cells[i].why))
			}
			if better >= 0 {
				why = append(why, fmt.Errorf("%s: %s: %s, and %s has it", c.name, k.name, c.cells[i].says, t.columns[better].name))
			}
		}
	}
	return errors.Join(why...)
}
