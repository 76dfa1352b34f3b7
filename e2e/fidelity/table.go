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

// ours is the prefix of the names of Stasis's columns.
const ours = "Stasis, "

// The names of Stasis's columns.
const (
	cold           = ours + "cold"
	warm           = ours + "warm"
	gated          = ours + "warm, by gates"
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

// shells are the columns of the shell engine. They have a separate table.
var shells = []string{shellCold, shellWarm, shellStandby, shellParked, toShell, toChrome}

// lossless are the columns that must lose nothing.
var lossless = []string{cold, warm, gated, standby, parked, otherDirectory}

// losslessInShell returns the kinds that the columns of the shell must not lose either.
func losslessInShell() map[string]bool {
	names := map[string]bool{}
	for _, some := range [][]kind{plain(), singleTab(), besideBlankTab(), logins(applicationsToTry())} {
		for _, k := range some {
			names[k.name] = true
		}
	}
	return names
}

// atLeast maps a column to one whose kept kinds it must keep too.
var atLeast = map[string]string{shellWarm: shellCold, shellStandby: shellCold, shellParked: shellCold}

// impossible maps the kinds that a save as files cannot keep to the reason, and how that
// was seen.
var impossible = map[string]string{
	"… titles of the pages in them": "Chrome restores only the open page's title from its session files: " +
		"a plain Chrome with --restore-last-session shows no others either. The state document has them.",
	"sessionStorage: a lone surrogate in a key": "Chrome writes the keys of sessionStorage in UTF-8, which has no lone surrogates " +
		"(Blink's CachedStorageArea). It writes values in UTF-16. CDP cannot express such a key either.",
}

// table is the whole result.
type table struct {
	rows    []kind
	columns []column
	chrome  string   // product and version of Chrome
	names   []string // client libraries with their versions
}

// clients reads the versions of the client libraries below a folder.
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

// intro precedes the first table. It takes the versions of Chrome and of the client
// libraries.
const intro = `# What survives, and how

` + "`make fidelity`" + ` writes this page. It tries every cell. Each method starts with a copy of the same user data directory and
makes every kind of state in its browser. It saves the state, ends that browser and restores the state in another one.
The same steps read the state before and after. The pages belong to two sites, one framed in the other.

| a cell says | the state after the restore |
|---|---|
| ` + kept + ` | is exactly the same |
| ` + changed + ` | is there, but differs |
| ` + lost + ` | is gone |
| ` + absent + ` | was not there before the save either |
| ` + otherPath + ` | was not tried: an environment with this state takes another restore path. The note says why |

| column of Stasis | what is saved, and how it is restored |
|---|---|
| cold | a save as files, restored into a Chrome that is started for it |
| warm | a save as files, restored into a spare (` + "`--spares`" + `) |
| warm, by gates | the same, but the files are moved into the spare's own profile. That happens unless the environment has something for which Chrome must open another profile ([restore.md](restore.md#restore-paths)) |
| standby | a save as files, which a standby (` + "`--standby`" + `) has already loaded |
| parked | a memory snapshot; its frozen Chrome is thawed |
| other data directory | an exported archive, imported by another daemon with other keys, another path and other users for its Chromes |
| portable | Playwright's format with IndexedDB, exported by one daemon and imported by another |

Each run checks in the restore's report that the restore took this path.

The last rows of each table have separate environments without overrides, passkeys or extension: a single tab without
scripts, such a tab beside a blank one, and three real applications. Each application is logged in to through its form.
Its login counts as kept if the page can read what only the account can read, without a new login. DokuWiki keeps the
login in session cookies, Node-RED in localStorage, phpLiteAdmin ("Remember me") in persistent cookies.

The libraries are used as their documentation shows. ` + "`storageState`" + ` is called with all its options (indexedDB, opfs,
credentials). Overrides, and the proxy with its password, are set at the first start and not again. Only Stasis gets a
permission policy, because the libraries have no option for it. The libraries get the extension at both starts.

Scroll positions and form data reach Chrome's session files late: up to a second after a change in the tab in front, and
up to five in others. A filesystem save makes Chrome write them at once. The files that are copied from a frozen Chrome
lack later changes.

Tried with %s and %s.

## Full Chrome

`

// shellIntro precedes the table of the shell engine.
const shellIntro = `
## The shell

The same with ` + "`engine: shell`" + `. The last two columns are saves as files from one engine, restored cold in the other. State
that the shell does not use is lost to its pages, but stays in the environment.

`

// markdown returns the page.
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

// section writes a table of the columns whose names in accepts.
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
			fmt.Fprintf(out, " %s%s |", c.cells[i].outcome, n.mark(explain(k.name, c.cells[i].why)))
		}
		fmt.Fprintln(out)
	}
}

// notes are the footnotes of cells. Cells with the same text share one.
type notes []string

// mark returns the reference to a footnote as a cell shows it; "" if there is no note.
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

// verdict returns an error in three cases: a Stasis column loses a kind that is not
// impossible, a library keeps one that Stasis loses, or a column loses what asMuch
// demands.
func (t *table) verdict() error {
	at := map[string]column{}
	for _, c := range t.columns {
		at[c.name] = c
	}
	inShell := losslessInShell()
	var why []error
	for i, k := range t.rows {
		_, excused := impossible[k.name]
		better := slices.IndexFunc(t.columns, func(c column) bool {
			return !strings.HasPrefix(c.name, ours) && c.cells[i].outcome == kept
		})
		for _, c := range t.columns {
			is := c.cells[i]
			if is.outcome == kept || is.outcome == otherPath {
				continue
			}
			must := slices.Contains(lossless, c.name) || inShell[k.name] && slices.Contains(shells, c.name)
			if must && !excused {
				why = append(why, fmt.Errorf("%s: %s: %s %s; want kept", c.name, k.name, is.outcome, is.why))
			}
			if must && better >= 0 {
				why = append(why, fmt.Errorf("%s: %s: %s, but %s keeps it", c.name, k.name, is.outcome, t.columns[better].name))
			}
			if like, named := at[atLeast[c.name]]; named && like.cells[i].outcome == kept {
				why = append(why, fmt.Errorf("%s: %s: %s %s, but %s keeps it", c.name, k.name, is.outcome, is.why, like.name))
			}
		}
	}
	return errors.Join(why...)
}
