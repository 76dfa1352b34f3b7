package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// desktopProfile is the folder of a Chrome's first profile.
const desktopProfile = "Default"

// unpacked are folders of a profile with caches, which Chrome creates again.
var unpacked = []string{"Cache", "Code Cache", "GPUCache", "DawnGraphiteCache", "DawnWebGPUCache"}

// packProfile returns a tar.zst of a profile and the version of its Chrome, which is packed as
// it is read. Reading fails if a file cannot be read.
func packProfile(dir string) io.ReadCloser {
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(writeProfile(w, dir)) }() // CloseWithError returns nil
	return r
}

func writeProfile(w io.Writer, dir string) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		inProfile := name == desktopProfile || strings.HasPrefix(name, desktopProfile+"/")
		switch {
		case d.IsDir() && (!inProfile || slices.Contains(unpacked, d.Name())):
			return fs.SkipDir
		case !d.Type().IsRegular() || !inProfile && name != "Last Version":
			return nil
		}
		return packFile(t, path, name)
	})
	if err == nil {
		err = t.Close()
	}
	if err == nil {
		err = z.Close()
	}
	return err
}

func packFile(t *tar.Writer, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	_, err = io.CopyN(t, file, info.Size())
	return err
}
