package main

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/stasisd/stasis/client"
)

// extensionCmd manages the extensions of a running daemon.
type extensionCmd struct {
	Add    extensionAddCmd    `cmd:"" help:"Upload an extension: an unpacked folder, a zip or a .crx."`
	List   extensionListCmd   `cmd:"" help:"List the extensions."`
	Delete extensionDeleteCmd `cmd:"" help:"Delete an extension."`
}

type extensionAddCmd struct {
	remoteDaemon
	Path string `arg:"" help:"A folder with a manifest.json, a zip or a .crx." type:"existingpath"`
}

// Run is the verb. It prints the extension's ID.
func (c *extensionAddCmd) Run(ctx context.Context) error {
	info, err := os.Stat(c.Path)
	if err != nil {
		return exitError{exitUsage, err.Error()}
	}
	var body io.ReadCloser
	if info.IsDir() {
		body = zipped(c.Path)
	} else if body, err = os.Open(c.Path); err != nil {
		return exitError{exitUsage, err.Error()}
	}
	defer func() { _ = body.Close() }() // it was only read
	var e client.Extension
	if err := c.call(ctx, http.MethodPost, "/v1/extensions", body, &e); err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, e.ID)
	return err
}

// zipped returns a folder as a zip. It leaves out hidden files and folders, and fails at
// anything that is neither a file nor a folder.
func zipped(dir string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		z := zip.NewWriter(w)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(dir, path)
			switch {
			case err != nil:
				return err
			case relErr != nil:
				return relErr
			case name == ".":
				return nil
			case strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return fs.SkipDir
			case strings.HasPrefix(d.Name(), "."), d.IsDir():
				return nil
			case !d.Type().IsRegular():
				return fmt.Errorf("%s is neither a file nor a folder", path)
			}
			return addFile(z, path, filepath.ToSlash(name))
		})
		if err == nil {
			err = z.Close()
		}
		_ = w.CloseWithError(err) // never fails
	}()
	return r
}

func addFile(z *zip.Writer, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	entry, err := z.Create(name)
	if err == nil {
		_, err = io.Copy(entry, f)
	}
	return err
}

type extensionListCmd struct {
	remoteDaemon
	printed
}

// Run prints a line for each extension, its ID first.
func (c *extensionListCmd) Run(ctx context.Context) error {
	list, err := c.api().Extensions(ctx)
	if err != nil {
		return c.explain(err)
	}
	return c.print(list, func() error {
		t := newTable("ID", "VERSION", "SIZE", "USER", "NAME")
		for _, e := range list {
			t.row(e.ID, e.Version, size(e.SizeBytes), e.UserID, e.Name)
		}
		return t.Flush()
	})
}

type extensionDeleteCmd struct {
	remoteDaemon
	Force bool   `help:"Delete the extension even if snapshots use it. Snapshots keep their own files of it." env:"-"`
	ID    string `arg:"" help:"The extension's ID."`
}

// Run is the verb.
func (c *extensionDeleteCmd) Run(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, fmt.Sprintf("/v1/extensions/%s?force=%t", url.PathEscape(c.ID), c.Force), nil, nil)
}
