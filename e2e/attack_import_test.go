package e2e

import (
	"archive/tar"
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	_ "modernc.org/sqlite" // the driver

	"github.com/stasisd/stasis/e2e/daemon"
)

// importMemory is the documented limit of a daemon's memory, in bytes, while any
// profiles are imported, one at a time. Data beyond a reader's limit, as all of this
// is, takes no more with the race detector.
const importMemory = 512 << 20

// TestAttackImports imports profiles that are made to fill the memory of their readers.
// Each is imported or refused as the caller's error, and the daemon stays within its
// limit. Without the readers' limits each takes gigabytes.
func TestAttackImports(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true}))
	for name, files := range map[string]map[string]io.Reader{
		"settings":  {"Preferences": strings.NewReader(`{"a":[` + strings.Repeat("{},", 20<<20) + `{}]}`)},
		"bookmarks": {"Bookmarks": strings.NewReader(`{"roots":{"a":{"children":[` + strings.Repeat("{},", 20<<20) + `{}]}}}`)},
		"a cookie":  {"Cookies": hostileJar(t)},
		"blocks":    packedDatabases(),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", d.PID()), []byte("5"), 0); err != nil {
				t.Fatal(err)
			}
			body, err := os.Create(filepath.Join(t.TempDir(), "profile.tar.zst"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = body.Close() }() // only read from
			packProfile(t, body, files)
			a := d.Send(t, daemon.Key, http.MethodPost, "/v1/snapshots?format=datadir", body, http.Header{"Content-Type": {"application/octet-stream"}})
			if a.Status >= http.StatusInternalServerError {
				t.Errorf("%d %.500s", a.Status, a.Body)
			}
			peak := peakMemory(t, d.PID())
			if peak > importMemory {
				t.Errorf("the daemon's memory rose to %d MB; want less than importMemory", peak>>20)
			}
		})
	}
}

// packProfile writes a profile's files as a tar.zst. It adds settings if there are none.
func packProfile(t *testing.T, to *os.File, files map[string]io.Reader) {
	t.Helper()
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	out := tar.NewWriter(z)
	if files["Preferences"] == nil {
		files["Preferences"] = strings.NewReader("{}")
	}
	for name, content := range files {
		plain, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		size, err := io.Copy(plain, content)
		if err == nil {
			_, err = plain.Seek(0, io.SeekStart)
		}
		if err == nil {
			err = out.WriteHeader(&tar.Header{Name: "Default/" + name, Mode: 0o600, Size: size, Typeflag: tar.TypeReg})
		}
		if err == nil {
			_, err = io.Copy(out, plain)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = plain.Close()
		_ = os.Remove(plain.Name())
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
}

// hostileJar is a cookie database with one cookie, whose value has 100 MB.
func hostileJar(t *testing.T) io.Reader {
	t.Helper()
	file := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE cookies (host_key, top_frame_site_key, has_cross_site_ancestor, name, value, encrypted_value, path,
		expires_utc, is_persistent, is_secure, is_httponly, priority, samesite, source_scheme, source_port);
		INSERT INTO cookies SELECT 'a.example', '', 0, 'n', '', zeroblob(100000000), '/', 0, 0, 0, 0, 0, 0, 0, 0`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(body)
}

// packedDatabases returns the LevelDBs of a profile. Each has a table whose index names
// the same block many times: 31 MB of one value that is stored in little space.
func packedDatabases() map[string]io.Reader {
	files := map[string]io.Reader{}
	for dir, key := range map[string]string{
		"Local Storage/leveldb": "_https://a.example\x00\x01k", "Session Storage": "map-1-k", "Service Worker/Database": "REG:https://a.example/\x001",
		"File System/Origins": "ORIGIN:https_a.example_0", "IndexedDB/https_a.example_0.indexeddb.leveldb": "\x00\x01\x01\x01k",
		"IndexedDB/https_b.example_0.indexeddb.leveldb": "\x00\x01\x01\x01k",
	} {
		files[dir+"/CURRENT"] = strings.NewReader("MANIFEST-000001\n")
		files[dir+"/MANIFEST-000001"] = bytes.NewReader(record([]byte("\x02\x04\x03\x09\x04\x05\x07\x00\x05\x10\x01a\x01c")))
		files[dir+"/000005.ldb"] = bytes.NewReader(packedTable(key, 31<<20))
	}
	return files
}

func checksum(parts ...[]byte) uint32 {
	crc := crc32.Checksum(bytes.Join(parts, nil), crc32.MakeTable(crc32.Castagnoli))
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// record is a LevelDB log with one short record.
func record(body []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, checksum([]byte{1}, body))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(body)))
	return append(append(out, 1), body...)
}

func packedTable(key string, size int) []byte {
	var out []byte
	block := func(pairs ...[]byte) (at []byte) {
		var b []byte
		for i := 0; i < len(pairs); i += 2 {
			b = binary.AppendUvarint(append(b, 0), uint64(len(pairs[i])))
			b = binary.AppendUvarint(b, uint64(len(pairs[i+1])))
			b = append(append(b, pairs[i]...), pairs[i+1]...)
		}
		b = append(snappy.Encode(nil, append(b, 0, 0, 0, 0, 1, 0, 0, 0)), 1)
		at = binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(out))), uint64(len(b)-1))
		out = append(out, binary.LittleEndian.AppendUint32(b, checksum(b))...)
		return at
	}
	data := block([]byte(key+"\x01\x01\x00\x00\x00\x00\x00\x00"), make([]byte, size))
	var index [][]byte
	for i := range 20 {
		index = append(index, fmt.Appendf(nil, "%02d", i), data)
	}
	filters := block()
	footer := append(filters, block(index...)...)
	footer = append(footer, make([]byte, 40-len(footer))...)
	return append(append(out, footer...), binary.LittleEndian.AppendUint64(nil, 0xdb4775248b80fb57)...)
}
