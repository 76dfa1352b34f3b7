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

// ours begins the names of our own columns.
const ours = "Stasis, "

// Our columns.
const (
	cold           = ours + "cold"
	warm           = ours + "warm"
	standby        = ours + "standby"
	parked         = ours + "parked"
	otherDirectory = ours + "other data directory"
	portable       = ours + "portable"

	shellCold    = ours + "shell, cold"
	shellWarm    = ours + "shell, warm"
	shellStandby = ours + "shell, standby"
	shellParked  = ours + "shell, parked"
	toShell      = ours + "chrome → shell"
	toChrome     = ours + "shell → chrome"
)

// shells are the columns of the shell engine, which have a table of their own.
var shells = []string{shellCold, shellWarm, shellStandby, shellParked, toShell, toChrome}

// whole are the columns that must lose nothing.
var whole = []string{cold, warm, standby, parked, otherDirectory}

// wholeInShell are the kinds that the columns of the shell must not lose either.
func wholeInShell() map[string]bool {
	names := map[string]bool{}
	for _, some := range [][]kind{plain(), singleTab(), besideBlankTab(), logins(applicationsToTry())} {
		for _, k := range some {
			names[k.name] = true
		}
	}
	return names
}

// asMuch are columns that must keep what another one does.
var asMuch = map[string]string{shellWarm: shellCold, shellStandby: shellCold, shellParked: shellCold}

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
| ` + another + ` | was left out: an environment that has it comes back in another way, for the reason that is given |

Ways: *cold* is a save as files that comes back in a Chrome that is started for it, *warm* in one that was kept ready
(` + "`--spares`" + `), *standby* in one that had it brought in already (` + "`--standby`" + `); *parked* comes back from the frozen Chrome.
Which way it went is held against the restore's report. *Other data directory* is the archive of a save, exported and
imported by another daemon, with other keys, at another path and with other users for its Chromes; *portable* is
Playwright's format with IndexedDB, exported by one daemon and imported by another.

The last rows have environments of their own, with nothing else in them and no overrides, passkeys or extension: a single
tab without scripts, such a tab beside a blank one, and three real applications, each logged in to through its form. An
application counts as kept when its page gets, without a new login, what its account alone can read. DokuWiki keeps the login
in session cookies, Node-RED in localStorage, phpLiteAdmin ("Remember me") in persistent cookies.

Each library is used as its documentation shows, and storageState is asked for all that it offers (indexedDB, opfs,
credentials). What pages are told (overrides) is named at the first start and never again, the proxy and its password too;
a policy for permissions is given to ours alone, for the libraries have none. The libraries are given the extension at
both starts.

Scroll positions and forms reach Chrome's session files up to a second after they change in the tab in front, and up to
five in others. A filesystem save has Chrome write them at once; the copy beside a frozen Chrome lacks what changed since.

Tried with %s and %s.

## Full Chrome

`

// shellIntro stands before the table of the shell engine.
const shellIntro = `
## The shell

The same with ` + "`engine: shell`" + `, and saves as files in one engine that come back, cold, in the other. What the shell does not
use is lost to its pages, and not to the environment.

`

// markdown is the document.
func (t *table) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, intro, t.chrome, strings.Join(t.names, ", "))
	var n notes
	t.section(&out, &n, func(name string) bool { return !slices.Contains(shells, name) })
	fmt.Fprint(&out, shellIntro)
	t.section(&out, &n, func(name string) bool { return slices.Contains(shells, name) })
	fmt.Fprintln(&out)
	for i, note := range n {
		fmt.Fprintf(&out, "%d. %s\n", i+1, note)
	}
	return out.String()
}

// section writes the table of those columns whose names are in it.
func (t *table) section(out *strings.Builder, n *notes, in func(name string) bool) {
	columns := slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool { return !in(c.name) })
	if len(columns) == 0 {
		return
	}
	head, line := "| kind of state |", "|---|"
	for _, c := range columns {
		head += " " + c.name + " |"
		line += "---|"
	}
	fmt.Fprintln(out, head)
	fmt.Fprintln(out, line)
	for i, k := range t.rows {
		fmt.Fprintf(out, "| %s%s |", k.name, n.mark(impossible[k.name]))
		for _, c := range columns {
			fmt.Fprintf(out, " %s%s |", c.cells[i].says, n.mark(c.cells[i].why))
		}
		fmt.Fprintln(out)
	}
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

// verdict is an error if one of ours is not whole but for what is impossible, if
// another's way is better in a row, or if one of ours loses what it must keep as
// another does.
func (t *table) verdict() error {
	at := map[string]column{}
	for _, c := range t.columns {
		at[c.name] = c
	}
	inShell := wholeInShell()
	var why []error
	for i, k := range t.rows {
		_, excused := impossible[k.name]
		better := slices.IndexFunc(t.columns, func(c column) bool {
			return !strings.HasPrefix(c.name, ours) && c.cells[i].says == kept
		})
		for _, c := range t.columns {
			is := c.cells[i]
			if is.says == kept || is.says == another {
				continue
			}
			must := slices.Contains(whole, c.name) || inShell[k.name] && slices.Contains(shells, c.name)
			if must && !excused {
				why = append(why, fmt.Errorf("%s: %s: %s %s", c.name, k.name, is.says, is.why))
			}
			if must && better >= 0 {
				why = append(why, fmt.Errorf("%s: %s: %s, and %s has it", c.name, k.name, is.says, t.columns[better].name))
			}
			if like, named := at[asMuch[c.name]]; named && like.cells[i].says == kept {
				why = append(why, fmt.Errorf("%s: %s: %s %s, and %s has it", c.name, k.name, is.says, is.why, like.name))
			}
		}
	}
	return errors.Join(why...)
}
