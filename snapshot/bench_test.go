package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/snapshot"
)

// benchProfile writes about 2 MB in 150 files. Half of them resemble the sparse databases
// of a closed profile, the rest is text and noise.
func benchProfile(b *testing.B) []snapshot.Entry {
	b.Helper()
	dir := b.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	var entries []snapshot.Entry
	for n := range 150 {
		body := make([]byte, 14_000)
		switch n % 5 {
		case 0, 1:
			copy(body, "SQLite format 3")
		case 2, 3:
			for i := range body {
				body[i] = "{\"session\":true,"[random.IntN(16)]
			}
		default:
			for i := range 2000 {
				body[i] = byte(random.Uint32())
			}
		}
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(path, body, 0o600); err != nil {
			b.Fatal(err)
		}
		entries = append(entries, snapshot.Entry{Name: fmt.Sprintf("Default/%d/file", n), Path: path})
	}
	return entries
}

func BenchmarkSave(b *testing.B) {
	b.ReportAllocs()
	v, _ := newVault(b)
	entries := benchProfile(b)
	n := 0
	for b.Loop() {
		n++
		d := draft(n, append(entries, snapshot.Entry{Name: "state.json", Data: fmt.Append(nil, n)})...)
		s := save(b, v, d)
		b.SetBytes(s.Archive.TarSize)
		b.ReportMetric(float64(s.Archive.StoredSize), "stored-bytes")
	}
}

func BenchmarkUnpack(b *testing.B) {
	b.ReportAllocs()
	v, _ := newVault(b)
	s := save(b, v, draft(1, benchProfile(b)...))
	b.SetBytes(s.Archive.TarSize)
	dir := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		if _, err := v.Unpack(b.Context(), s, filepath.Join(dir, fmt.Sprint(n)), snapshot.UnpackOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
