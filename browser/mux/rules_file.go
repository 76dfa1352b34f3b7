package mux

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

var errNoFiles = errors.New("the session has no folder for files")

// filesIn returns the rule for a list of paths. names is the path of member names to that
// list in the parameters.
func filesIn(names ...string) func(*call) error {
	return func(c *call) error { return c.localize(c.params, names) }
}

func (c *call) localize(in fields, names []string) error {
	if _, ok := in[names[0]]; !ok {
		return nil
	}
	if len(names) > 1 {
		var inner fields
		if err := inner.read(in[names[0]]); err != nil {
			return err
		}
		if err := c.localize(inner, names[1:]); err != nil {
			return err
		}
		in[names[0]] = inner.write()
		return nil
	}
	var paths []string
	if err := in.get(names[0], &paths); err != nil {
		return err
	}
	for i, path := range paths {
		full, err := c.file(path)
		if err != nil {
			return err
		}
		paths[i] = full
	}
	c.changed = true
	return in.set(names[0], paths)
}

// file converts a client's path to the absolute path of a regular file in the session's
// folder. The path may be a name, relative to the folder, or absolute and within it.
// Clients such as Puppeteer make a path absolute on their own machine before they send
// it. So only the file name of any other path is used. Symbolic links are followed only
// within the folder.
func (p *Policy) file(path string) (string, error) {
	if p.FilesDir == "" {
		return "", errNoFiles
	}
	rel := path
	if filepath.IsAbs(path) {
		inside, err := filepath.Rel(p.FilesDir, path)
		if rel = inside; err != nil || !filepath.IsLocal(inside) {
			rel = filepath.Base(path)
		}
	}
	if !filepath.IsLocal(rel) {
		return "", errOutside
	}
	root, err := os.OpenRoot(p.FilesDir)
	if err != nil {
		return "", errNoFiles
	}
	defer func() { _ = root.Close() }() // it was only read
	info, err := root.Stat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%q: no such file among the session's files; upload it first with POST /v1/sessions/{id}/files?name=%s", filepath.Base(rel), url.QueryEscape(filepath.Base(rel)))
	}
	return filepath.Join(p.FilesDir, rel), nil
}

var errOutside = errors.New("the path leads outside the session's files; give the name of one of them")
