package leveldb_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
)

func all([]byte) bool { return true }

func masked(parts ...byte) uint32 {
	crc := crc32.Checksum(parts, crc32.MakeTable(crc32.Castagnoli))
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// logOf writes records as LevelDB's log writer does.
func logOf(records ...string) []byte {
	var out []byte
	for _, r := range records {
		for first := true; first || len(r) > 0; first = false {
			left := 32<<10 - len(out)%(32<<10)
			if left < 7 {
				out = append(out, make([]byte, left)...)
				left = 32 << 10
			}
			n := min(len(r), left-7)
			kind := byte(3)
			switch whole := n == len(r); {
			case first && whole:
				kind = 1
			case first:
				kind = 2
			case whole:
				kind = 4
			}
			out = binary.LittleEndian.AppendUint32(out, masked(append([]byte{kind}, r[:n]...)...))
			out = append(binary.LittleEndian.AppendUint16(out, uint16(n)), kind)
			out = append(out, r[:n]...)
			if r = r[n:]; len(r) == 0 {
				break
			}
		}
	}
	return out
}

func sized(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

func put(k, v string) string { return "\x01" + sized(k) + sized(v) }
func del(k string) string    { return "\x00" + sized(k) }

func batch(seq uint64, ops ...string) string {
	head := binary.LittleEndian.AppendUint64(nil, seq)
	return string(binary.LittleEndian.AppendUint32(head, uint32(len(ops)))) + strings.Join(ops, "")
}

// blockOf encodes a block without shared prefixes, and its trailer.
func blockOf(compress bool, pairs ...string) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, 0)
		b = binary.AppendUvarint(b, uint64(len(pairs[i])))
		b = binary.AppendUvarint(b, uint64(len(pairs[i+1])))
		b = append(b, pairs[i]+pairs[i+1]...)
	}
	b = append(b, 0, 0, 0, 0, 1, 0, 0, 0) // one restart, at 0
	kind := byte(0)
	if compress {
		b, kind = snappy.Encode(nil, b), 1
	}
	b = append(b, kind)
	return binary.LittleEndian.AppendUint32(b, masked(b...))
}

func internal(key string, seq uint64, live bool) string {
	tail := seq << 8
	if live {
		tail |= 1
	}
	return key + string(binary.LittleEndian.AppendUint64(nil, tail))
}

// tableOf encodes a table with one block for each list of pairs.
func tableOf(blocks ...[]string) []byte {
	var out []byte
	var index []string
	add := func(b []byte) string {
		at := binary.AppendUvarint(nil, uint64(len(out)))
		at = binary.AppendUvarint(at, uint64(len(b)-5))
		out = append(out, b...)
		return string(at)
	}
	for i, pairs := range blocks {
		index = append(index, fmt.Sprint(i), add(blockOf(i%2 == 0, pairs...)))
	}
	filters := add(blockOf(false))
	footer := filters + add(blockOf(false, index...))
	footer += strings.Repeat("\x00", 40-len(footer))
	return binary.LittleEndian.AppendUint64(append(out, footer...), 0xdb4775248b80fb57)
}

// sample returns a database with two tables, of which one is no longer live, and a log.
// It holds a=2, c=3, and a value longer than a log block.
func sample() fstest.MapFS {
	file := func(b []byte) *fstest.MapFile { return &fstest.MapFile{Data: b} }
	return fstest.MapFS{
		"db/CURRENT": file([]byte("MANIFEST-000001\n")),
		"db/MANIFEST-000001": file(logOf(
			"\x01"+sized("idb_cmp1")+"\x02\x04\x03\x09\x04\x05"+"\x07\x00\x05\x10"+sized("a")+sized("c")+"\x07\x01\x06\x10"+sized("a")+sized("c"),
			"\x06\x01\x06")),
		"db/000005.ldb": file(tableOf(
			[]string{internal("a", 1, true), "1", internal("b", 2, true), "1"},
			[]string{internal("c", 3, true), "3"})),
		"db/000006.ldb": file(tableOf([]string{internal("z", 9, true), "deleted"})),
		"db/000003.log": file(logOf(batch(90, put("old", "x")))),
		"db/000004.log": file(logOf(batch(4, put("a", "2"), del("b")), batch(6, put("long", strings.Repeat("v", 70<<10))))),
	}
}

func read(t *testing.T, fsys fstest.MapFS) leveldb.Database {
	t.Helper()
	db, err := leveldb.Read(t.Context(), fsys, "db", all, true)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func values(db leveldb.Database) map[string]string {
	out := map[string]string{}
	for k, v := range db.Entries {
		out[k] = string(v)
	}
	return out
}

// The newest version of a key counts, in whatever file it is. Files that are no longer
// live do not count.
func TestRead(t *testing.T) {
	db := read(t, sample())
	want := map[string]string{"a": "2", "c": "3", "long": strings.Repeat("v", 70<<10)}
	if diff := cmp.Diff(want, values(db)); diff != "" || db.Damage != "" {
		t.Errorf("%q (-want +got):\n%s", db.Damage, diff)
	}
	some, err := leveldb.Read(t.Context(), sample(), "db", func(key []byte) bool { return key[0] == 'a' }, false)
	if err != nil || len(some.Entries) != 1 || some.Entries["a"] != nil {
		t.Errorf("%v, %v", some, err)
	}
}

// A flipped bit in any meaningful byte is found, or changes nothing. The exception is a
// record's length, as in LevelDB itself: a length beyond the end of a log looks like a
// write that was cut off.
func TestEveryFlippedByteIsFound(t *testing.T) {
	whole := values(read(t, sample()))
	for name, file := range sample() {
		if len(file.Data) > 1<<10 {
			file.Data = file.Data[:1<<10] // the rest is one value
		}
		blind := map[int]bool{}
		for at := 0; at+7 < len(file.Data) && (strings.HasSuffix(name, ".log") || strings.Contains(name, "MANIFEST")); {
			blind[at+4], blind[at+5] = true, true
			at += 7 + int(binary.LittleEndian.Uint16(file.Data[at+4:]))
		}
		for i := range file.Data {
			fsys := sample()
			fsys[name].Data[i] ^= 0x10
			db, err := leveldb.Read(t.Context(), fsys, "db", all, true)
			if err != nil {
				t.Fatal(err)
			}
			if db.Damage == "" && !maps.Equal(whole, values(db)) && !blind[i] {
				t.Errorf("%s, byte %d: the damage was not found", name, i)
			}
		}
	}
}

// A log that does not end with a complete record was cut off while it was written.
// LevelDB ignores that, but a caller that knows of a clean exit must get an error. A log that
// is only longer than its records is complete.
func TestCut(t *testing.T) {
	first := logOf(batch(4, put("a", "2"), del("b")))
	whole := logOf(batch(4, put("a", "2"), del("b")), batch(6, put("long", strings.Repeat("v", 70<<10))))
	at := []int{0, len(first), len(whole), 32 << 10, 40 << 10, 64 << 10, len(whole) - 1}
	for n := range len(first) + 20 {
		at = append(at, n)
	}
	fsys := sample()
	for _, n := range at {
		fsys["db/000004.log"].Data = whole[:n]
		ends := n == 0 || n == len(first) || n == len(whole)
		if db := read(t, fsys); db.Truncated == ends || db.Damage != "" {
			t.Errorf("cut off after %d of %d bytes: cut %t, damage %q", n, len(whole), db.Truncated, db.Damage)
		}
	}
	fsys["db/000004.log"].Data = append(whole, make([]byte, 100)...)
	if read(t, fsys).Truncated {
		t.Error("zeros at the end count as a record")
	}
}

// Read returns what Write wrote, with values of any length. A deleted key is reported as
// deleted.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	want := map[string]string{"": "empty key", "a": "", "long": strings.Repeat("v", 3<<20), "z\xff": "\x00"}
	entries := map[string][]byte{}
	for k, v := range want {
		entries[k] = []byte(v)
	}
	if err := leveldb.Write(root, "db", entries); err != nil {
		t.Fatal(err)
	}
	db, err := leveldb.Read(t.Context(), root.FS(), "db", all, true)
	if err != nil || db.Damage != "" || db.Truncated {
		t.Fatalf("%v, %q, %t", err, db.Damage, db.Truncated)
	}
	if diff := cmp.Diff(want, values(db)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if db := read(t, sample()); len(db.Deleted) != 1 || db.Deleted[0] != "b" {
		t.Errorf("deleted: %q", db.Deleted)
	}
}

// Damage affects only the damaged part, and the rest is read.
func TestReadAroundDamage(t *testing.T) {
	for name, test := range map[string]struct {
		corrupt func(fstest.MapFS)
		left    string
		damage  string
	}{
		"a block":         {func(f fstest.MapFS) { f["db/000005.ldb"].Data[3] ^= 1 }, "a c long", "a table is damaged"},
		"a table is cut":  {func(f fstest.MapFS) { f["db/000005.ldb"].Data = f["db/000005.ldb"].Data[:50] }, "a long", "a table is damaged"},
		"a table is gone": {func(f fstest.MapFS) { delete(f, "db/000005.ldb") }, "a long", "a table is missing"},
		"a log record":    {func(f fstest.MapFS) { f["db/000004.log"].Data[9] ^= 1 }, "a b c", "a log is damaged"},
		"the manifest":    {func(f fstest.MapFS) { f["db/MANIFEST-000001"].Data[9] ^= 1 }, "", "its list of files is damaged"},
		"no manifest":     {func(f fstest.MapFS) { delete(f, "db/MANIFEST-000001") }, "", "its list of files is missing"},
		"a hostile name":  {func(f fstest.MapFS) { f["db/CURRENT"].Data = []byte("MANIFEST-/../../x\n") }, "", "its list of files is damaged"},
		"a log is cut":    {func(f fstest.MapFS) { f["db/000004.log"].Data = f["db/000004.log"].Data[:100] }, "a c", ""},
	} {
		fsys := sample()
		test.corrupt(fsys)
		db := read(t, fsys)
		var left []string
		for _, k := range []string{"a", "b", "c", "long"} {
			if _, ok := db.Entries[k]; ok {
				left = append(left, k)
			}
		}
		if got := strings.Join(left, " "); got != test.left || db.Damage != test.damage {
			t.Errorf("%s: %q, %q", name, got, db.Damage)
		}
	}
}

// A database over the limits gives ErrTooMuch, and is not called damaged. The limits
// cover the sum of its entries, one record or block, and the unpacked size of a small
// file. Overwritten values do not count.
func TestTooMuch(t *testing.T) {
	quarter := strings.Repeat("v", leveldb.MaxBytes/4)
	in := func(name string, b []byte) fstest.MapFS {
		fsys := sample()
		fsys["db/"+name].Data = b
		return fsys
	}
	var many []string
	for i := range leveldb.MaxEntries + 1 {
		many = append(many, del(fmt.Sprint(i)))
	}
	for name, test := range map[string]struct {
		fsys fstest.MapFS
		much bool
	}{
		"bytes":        {in("000004.log", logOf(batch(4, put("a", quarter)), batch(5, put("b", quarter)), batch(6, put("c", quarter)), batch(7, put("d", quarter)))), true},
		"written over": {in("000004.log", logOf(batch(4, put("a", quarter)), batch(5, put("a", quarter)), batch(6, put("a", quarter)), batch(7, put("a", quarter)))), false},
		"entries":      {in("000004.log", logOf(batch(4, many...))), true},
		"a cut record": {in("000004.log", logOf(batch(4, put("a", strings.Repeat(quarter, 5))))[:leveldb.MaxBytes+1000]), false},
		"a record":     {in("000004.log", logOf(batch(4, put("a", strings.Repeat(quarter, 5))))), true},
		"a block":      {in("000005.ldb", tableOf([]string{internal("c", 3, true), strings.Repeat(quarter, 5)})), true},
	} {
		db, err := leveldb.Read(t.Context(), test.fsys, "db", all, true)
		if errors.Is(err, leveldb.ErrTooMuch) != test.much || db.Damage != "" {
			t.Errorf("%s: %q, %v", name, db.Damage, err)
		}
	}
}

// A write may have any length. Small values in it are read all the same, but none of them
// if its end is missing.
func TestLongRecord(t *testing.T) {
	fsys := sample()
	log := logOf(batch(4, put("meta1", "1"), put("a", strings.Repeat("v", leveldb.MaxBytes+1)), put("meta2", "2"), del("meta3")))
	meta := func(key []byte) bool { return strings.HasPrefix(string(key), "meta") }
	for n, want := range map[int]int{len(log): 2, len(log) - 1: 0} {
		fsys["db/000004.log"].Data = log[:n]
		db, err := leveldb.Read(t.Context(), fsys, "db", meta, true)
		if err != nil || db.Damage != "" || len(db.Entries) != want || len(db.Deleted) != want/2 || db.Truncated != (want == 0) {
			t.Errorf("%d of %d bytes: %q, deleted %q, cut %t, %q, %v", n, len(log), values(db), db.Deleted, db.Truncated, db.Damage, err)
		}
	}
}

// An index may name the same block many times, intact or damaged. The reading still ends.
func TestRepeatedBlock(t *testing.T) {
	for name, harm := range map[string]byte{"whole": 0, "damaged": 1} {
		out := blockOf(name == "whole", internal("c", 3, true), strings.Repeat("v", 15<<20))
		at := string(binary.AppendUvarint([]byte{0}, uint64(len(out)-5)))
		out[5] ^= harm
		var index []string
		for i := range 100 {
			index = append(index, fmt.Sprintf("%03d", i), at)
		}
		add := func(b []byte) (at []byte) {
			at = binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(out))), uint64(len(b)-5))
			out = append(out, b...)
			return at
		}
		footer := append(add(blockOf(false)), add(blockOf(true, index...))...)
		footer = append(footer, make([]byte, 40-len(footer))...)
		fsys := sample()
		fsys["db/000005.ldb"].Data = binary.LittleEndian.AppendUint64(append(out, footer...), 0xdb4775248b80fb57)
		if _, err := leveldb.Read(t.Context(), fsys, "db", func([]byte) bool { return false }, false); !errors.Is(err, leveldb.ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A canceled reading stops at the next entry, in a table and in a log, and is not called
// damage.
func TestCanceled(t *testing.T) {
	for _, last := range []int{1, 4} { // of three entries in the table
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		_, err := leveldb.Read(ctx, sample(), "db", func([]byte) bool {
			if seen++; seen == last {
				cancel()
			}
			return true
		}, true)
		if !errors.Is(err, context.Canceled) || seen != last {
			t.Errorf("after %d of %d: %v", seen, last, err)
		}
		cancel()
	}
}

// For any bytes, reading ends and returns no more than the limits.
func FuzzRead(f *testing.F) {
	s := sample()
	f.Add(s["db/MANIFEST-000001"].Data, s["db/000005.ldb"].Data, s["db/000004.log"].Data[:100])
	f.Fuzz(func(t *testing.T, manifest, table, log []byte) {
		fsys := sample()
		fsys["db/MANIFEST-000001"].Data, fsys["db/000005.ldb"].Data, fsys["db/000004.log"].Data = manifest, table, log
		db, err := leveldb.Read(t.Context(), fsys, "db", all, true)
		if err == nil && len(db.Entries) > leveldb.MaxEntries {
			t.Error("too many entries")
		}
	})
}
