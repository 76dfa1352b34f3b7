// Guards shows that the tests of attacks can fail. For each guard of its table it builds the
// daemon without that guard, runs the test that attacks it, and expects the test to fail. It
// is run as
//
//	go run ./e2e/guards
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// guard is something in the source that stops an attack.
type guard struct {
	name  string // for -only
	keeps string // what holds because of it
	// without are the changes that take the guard out. Where several guards stop the same
	// attack, they take out all of them, and also says which.
	without []edit
	also    string
	pkg     string // of the test; "": ./e2e
	test    string // for go test -run
	as      string // for STASIS_ATTACKED, see attacked in e2e
	fails   string // a text of the test's failure
	// bounded runs the test in control groups: without the guard, it would take all memory
	// or all processes of the machine.
	bounded bool
	long    bool // the test is only in the long form
}

// edit replaces a text that a file contains exactly once.
type edit struct {
	file string // below the root of the repository
	old  string
	new  string
}

// root is the folder of the repository, from the folder of this package or the repository.
func root() (string, error) {
	at, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	return "", fmt.Errorf("no go.mod above the working directory")
}

// mutated returns the files without the guard, by their paths below the root.
func (g guard) mutated(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range g.without {
		text, ok := files[e.file]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", g.name, err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s: %s has %d times, want once:\n%s", g.name, e.file, n, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return files, nil
}

// all returns all guards.
func all() (list []guard) {
	for _, part := range [][]guard{addresses, clients, callers, takers, uploads} {
		list = append(list, part...)
	}
	return list
}
