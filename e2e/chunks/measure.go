package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"

	chunkers "github.com/PlakarKorp/go-cdc-chunkers"
	_ "github.com/PlakarKorp/go-cdc-chunkers/chunkers/fastcdc" // the algorithm registers itself
	"github.com/klauspost/compress/zstd"
)

// sizes are the average sizes of chunks that are tried, in KB; the smallest is a
// quarter of it, the largest four times.
var sizes = []int{16, 64, 256}

// saved is one snapshot.
type saved struct {
	name   string
	tar    []byte
	stored int64 // bytes of its sealed archive
}

func unpacked(archive []byte, stored int64) (saved, error) {
	d, err := zstd.NewReader(bytes.NewReader(archive))
	if err != nil {
		return saved{}, err
	}
	defer d.Close()
	tar, err := io.ReadAll(d)
	return saved{tar: tar, stored: stored}, err
}

// measured is what all snapshots so far take, in each way.
type measured struct {
	rows  []row
	tars  map[[sha256.Size]byte]bool
	known map[int]map[[sha256.Size]byte]bool // by average size: the chunks
}

// row is one snapshot: what it takes as a whole archive, and what it adds as
// chunks, by their average size.
type row struct {
	name   string
	tar    int
	stored int64
	equal  bool // to one before
	added  map[int]added
}

// added is what a snapshot adds to the chunks that are there.
type added struct {
	chunks, of int   // new ones, of so many
	raw        int64 // bytes of the new ones
	packed     int64 // bytes of the new ones, each compressed by itself
}

func (m *measured) add(s saved) error {
	if m.known == nil {
		m.tars, m.known = map[[sha256.Size]byte]bool{}, map[int]map[[sha256.Size]byte]bool{}
	}
	sum := sha256.Sum256(s.tar)
	r := row{name: s.name, tar: len(s.tar), stored: s.stored, equal: m.tars[sum], added: map[int]added{}}
	m.tars[sum] = true
	for _, size := range sizes {
		a, err := m.chunked(s.tar, size)
		if err != nil {
			return err
		}
		r.added[size] = a
	}
	m.rows = append(m.rows, r)
	return nil
}

func (m *measured) chunked(tar []byte, size int) (a added, err error) {
	if m.known[size] == nil {
		m.known[size] = map[[sha256.Size]byte]bool{}
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return a, err
	}
	average := size << 10
	c, err := chunkers.NewChunker("fastcdc-v1.0.0", bytes.NewReader(tar),
		&chunkers.ChunkerOpts{MinSize: average / 4, NormalSize: average, MaxSize: average * 4})
	if err != nil {
		return a, err
	}
	err = c.Split(func(_, _ uint, chunk []byte) error {
		sum := sha256.Sum256(chunk)
		a.of++
		if len(chunk) == 0 || m.known[size][sum] {
			return nil
		}
		m.known[size][sum] = true
		a.chunks++
		a.raw += int64(len(chunk))
		a.packed += int64(len(encoder.EncodeAll(chunk, nil)))
		return nil
	})
	return a, err
}

// print writes the tables, in MB.
func (m *measured) print(w io.Writer) {
	mb := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1e6) }
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // to the terminal
	line("| MB | tar | whole archive, sealed | equal to one before |")
	for _, size := range sizes {
		line(" new chunks of %d KB |", size)
	}
	line("\n|---|---|---|---|")
	for range sizes {
		line("---|")
	}
	line("\n")
	var whole int64
	total := map[int]added{}
	for _, r := range m.rows {
		equal := "no"
		if r.equal {
			equal = "yes"
		}
		line("| %s | %s | %s | %s |", r.name, mb(int64(r.tar)), mb(r.stored), equal)
		whole += r.stored
		for _, size := range sizes {
			a, t := r.added[size], total[size]
			line(" %s (%d of %d) |", mb(a.packed), a.chunks, a.of)
			total[size] = added{t.chunks + a.chunks, t.of + a.of, t.raw + a.raw, t.packed + a.packed}
		}
		line("\n")
	}
	line("| all | | %s | |", mb(whole))
	for _, size := range sizes {
		line(" %s, %.0f %% (%d objects) |", mb(total[size].packed), 100*float64(total[size].packed)/float64(whole), total[size].chunks)
	}
	line("\n")
}
