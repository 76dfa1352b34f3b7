package extension

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// manifestName is the one file that every extension has.
const manifestName = "manifest.json"

const (
	maxDirectory = 8 << 20 // bytes of a zip's list of files
	maxName      = 1024    // bytes of a file's name, its folders included
	maxElement   = 255     // bytes of one path element, as file systems allow
	maxDepth     = 24      // path elements; an archive adds some above them and allows 32
)

// files has an extension's files by their names relative to its folder.
type files map[string]*zip.File

// listZip lists the files of a zip. It rejects the zip if a name leads out of the folder,
// occurs twice or differs from another only by case. It also rejects entries that are
// neither files nor folders.
func listZip(r io.ReaderAt, size int64) (files, error) {
	if err := checkDirectory(r, size); err != nil {
		return nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, unreadable("the zip", err)
	}
	if len(z.File) > maxFiles {
		return nil, tooLarge("the extension has more than %d files", maxFiles)
	}
	list, folded, total := files{}, map[string]string{}, uint64(0)
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, "/")
		if err := checkName(name); err != nil {
			return nil, err
		}
		if mode := f.Mode(); !mode.IsRegular() && !mode.IsDir() || mode.IsDir() != strings.HasSuffix(f.Name, "/") {
			return nil, invalid("%q is neither a file nor a folder", name)
		}
		if f.Flags&1 != 0 {
			return nil, invalid("%q is encrypted", name)
		}
		if err := clash(folded, name, f.Mode().IsDir()); err != nil {
			return nil, err
		}
		if len(folded) > maxFiles {
			return nil, tooLarge("the extension has more than %d files and folders", maxFiles)
		}
		if f.Mode().IsDir() {
			continue
		}
		if total += f.UncompressedSize64; f.UncompressedSize64 > maxFile || total > maxBytes {
			return nil, tooBig()
		}
		list[name] = f
	}
	return list.stripFolder(), nil
}

// checkDirectory bounds the zip's directory before it is read into memory. The end record
// (APPNOTE.TXT 4.3.16) gives its length and position, and both must agree. A zip64 end
// locator (4.3.15), which points to another directory, is rejected: no extension is large
// enough to need it.
func checkDirectory(r io.ReaderAt, size int64) error {
	const record, signature = 22, "PK\x05\x06"
	const locator, locatorSignature = 20, "PK\x06\x07"
	tail := make([]byte, min(size, record+1<<16+locator))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return unreadable("the file", err)
	}
	at := bytes.LastIndex(tail, []byte(signature))
	if at < 0 || at+record > len(tail) {
		return invalid("the file is neither a zip nor a .crx")
	}
	if at >= locator && string(tail[at-locator:][:len(locatorSignature)]) == locatorSignature {
		return invalid("zip64 is not supported: pack the extension as a plain zip")
	}
	length := int64(binary.LittleEndian.Uint32(tail[at+12:]))
	start := int64(binary.LittleEndian.Uint32(tail[at+16:]))
	switch end := size - int64(len(tail)) + int64(at); {
	case length > maxDirectory:
		return tooLarge("the extension has more than %d files", maxFiles)
	case start+length != end:
		return invalid("the zip is malformed")
	}
	return nil
}

func checkName(name string) error {
	bad := strings.Count(name, "/") >= maxDepth || name == "" || len(name) > maxName || !utf8.ValidString(name) || path.IsAbs(name) ||
		path.Clean(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == ':' || r == 0x7f })
	for _, element := range strings.Split(name, "/") {
		bad = bad || element == ".." || element == "." || len(element) > maxElement
	}
	if bad {
		return invalid("the name %q is not a clean relative path", shorten(name))
	}
	return nil
}

func shorten(s string) string { return s[:min(len(s), 80)] }

// clash rejects a name that equals, ignoring case, another name or a folder above another
// one. On file systems that ignore case, one would hide the other.
func clash(folded map[string]string, name string, dir bool) error {
	for at, isDir := name, dir; at != "."; at, isDir = path.Dir(at), true {
		kind := "file "
		if isDir {
			kind = "folder "
		}
		key := strings.ToLower(at)
		was, there := folded[key]
		if there && (was != kind+at || !isDir) {
			return invalid("the name %q occurs twice, or differs from another only by case", shorten(at))
		}
		folded[key] = kind + at
	}
	return nil
}

// stripFolder removes the single folder that may contain a zip's files. It leaves out
// files that operating systems add to zips, and those that Chrome writes itself.
func (f files) stripFolder() files {
	top := ""
	if f[manifestName] == nil {
		for name := range f {
			if first, rest, ok := strings.Cut(name, "/"); ok && rest == manifestName {
				top = first + "/"
			}
		}
		for name := range f {
			if !strings.HasPrefix(name, top) && !isSystemFile(name) {
				top = ""
			}
		}
	}
	list := files{}
	for name, file := range f {
		if rest, ok := strings.CutPrefix(name, top); ok && !isSystemFile(name) && !isSystemFile(rest) {
			list[rest] = file
		}
	}
	return list
}

func isSystemFile(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "__MACOSX" || first == metadata || path.Base(name) == ".DS_Store"
}

// read returns one file's bytes, at most limit.
func (f files) read(name string, limit int64) ([]byte, error) {
	file := f[name]
	if file == nil {
		return nil, fs.ErrNotExist
	}
	if file.UncompressedSize64 > uint64(limit) {
		return nil, tooLarge("%s has more than %d bytes", name, limit)
	}
	r, err := file.Open()
	if err != nil {
		return nil, unreadable(name, err)
	}
	body, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, unreadable(name, err)
	}
	return body, nil
}

func (f files) manifest() ([]byte, error) {
	raw, err := f.read(manifestName, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, invalid("there is no manifest.json, neither at the top nor in a single folder")
	}
	return raw, err
}
