// Package extension reads Chrome extensions as people have them, as a zip or a .crx file,
// and stores them as the folders that Chrome loads.
//
// The input is hostile: signatures, names, sizes and the manifest are checked before
// anything is written. The output is a folder with a manifest whose key gives the
// extension the same ID wherever it is loaded. This package does not talk to Chrome;
// package browser loads the folders.
package extension

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stasisd/stasis/fault"
)

// These are the limits of one extension. Real ones have a few hundred files; the largest
// published ones unpack to about 100 MB.
const (
	maxFiles = 20_000    // and folders
	maxBytes = 256 << 20 // of all files, unpacked
	maxFile  = 128 << 20 // of one, unpacked
)

// Info describes an extension.
type Info struct {
	ID      string // 32 letters, a to p
	SHA256  string // of its files (see [Inspect]), hex
	Name    string
	Version string
	Size    int64 // of its files, bytes
}

// Write reads an extension, checks it and writes its files into dir, an empty folder.
// Errors: invalid_extension says what is wrong with it; too_large, that it has too many
// files or bytes; unsupported, that Chrome or this daemon does not run its kind;
// store_full and store_failed come from the disk. After an error, dir may hold a part of
// it.
func Write(ctx context.Context, r io.ReaderAt, size int64, dir string) (Info, error) {
	body, key, err := openCRX(r, size)
	if err != nil {
		return Info{}, err
	}
	files, err := listZip(body, body.Size())
	if err != nil {
		return Info{}, err
	}
	raw, err := files.manifest()
	if err != nil {
		return Info{}, err
	}
	m, err := parseManifest(raw)
	if err != nil {
		return Info{}, err
	}
	if err := checkReferences(raw, func(name string) bool { return files[name] != nil }); err != nil {
		return Info{}, err
	}
	m.localize(files.read)
	if raw, err = m.withKey(raw, key); err != nil {
		return Info{}, err
	}
	if err := files.write(dir, raw); err != nil {
		return Info{}, err
	}
	return Inspect(ctx, dir)
}

// invalid returns an invalid_extension error that says what is wrong.
func invalid(format string, args ...any) error {
	return fault.New(fault.InvalidExtension, "extension.read", format, args...)
}

func tooLarge(format string, args ...any) error {
	return fault.New(fault.TooLarge, "extension.read", format, args...)
}

func tooBig() error {
	return tooLarge("the extension unpacks to more than %d bytes, or one of its files to more than %d", maxBytes, maxFile)
}

// unreadable returns an error saying that a part of the file cannot be read. If err has
// an error code already, it returns err.
func unreadable(what string, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.InvalidExtension, "extension.read", fmt.Sprintf("%s cannot be read: it is damaged", what))
}
