// Package memstore keeps snapshots in memory, for tests and trials. Its contents end with
// the process.
package memstore

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Store is a [snapshot.Store] in memory.
type Store struct {
	capacity int64 // bytes; 0 means unlimited
	now      func() time.Time

	mu      sync.Mutex
	objects map[string]object
	used    int64 // bytes, including unfinished uploads
}

type object struct {
	body    []byte
	written time.Time
}

var _ snapshot.Store = (*Store)(nil)

// New returns an empty store for at most capacity bytes; 0 means unlimited. now is the
// clock of [snapshot.Stat].
func New(capacity int64, now func() time.Time) *Store {
	return &Store{capacity: capacity, now: now, objects: map[string]object{}}
}

func check(ctx context.Context, op string, key snapshot.Key) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.StoreFailed, "memstore."+op, "")
	}
	if key == (snapshot.Key{}) {
		return fault.New(fault.StoreFailed, "memstore."+op, "the object's name is empty")
	}
	return nil
}

// reserve reserves n bytes. The caller holds the lock.
func (s *Store) reserve(n int64) error {
	if s.capacity > 0 && s.used+n > s.capacity {
		return fault.New(fault.StoreFull, "memstore.write", "")
	}
	s.used += n
	return nil
}

// Open implements [snapshot.Store].
func (s *Store) Open(ctx context.Context, key snapshot.Key) (io.ReadCloser, error) {
	if err := check(ctx, "open", key); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[key.String()]
	if !ok {
		return nil, missing("open")
	}
	return io.NopCloser(bytes.NewReader(found.body)), nil
}

func missing(op string) error { return fault.New(fault.SnapshotNotFound, "memstore."+op, "") }

// Stat implements [snapshot.Store].
func (s *Store) Stat(ctx context.Context, key snapshot.Key) (snapshot.Stat, error) {
	if err := check(ctx, "stat", key); err != nil {
		return snapshot.Stat{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[key.String()]
	if !ok {
		return snapshot.Stat{}, missing("stat")
	}
	return snapshot.Stat{Size: int64(len(found.body)), Modified: found.written}, nil
}

// put stores a body whose space is already reserved. The caller holds the lock.
func (s *Store) put(key snapshot.Key, body []byte) {
	s.objects[key.String()] = object{body, s.now()}
}

// Create implements [snapshot.Store].
func (s *Store) Create(ctx context.Context, key snapshot.Key, body []byte) (bool, error) {
	if err := check(ctx, "create", key); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.objects[key.String()]; taken {
		return false, nil
	}
	if err := s.reserve(int64(len(body))); err != nil {
		return false, err
	}
	s.put(key, bytes.Clone(body))
	return true, nil
}

// Swap implements [snapshot.Store].
func (s *Store) Swap(ctx context.Context, key snapshot.Key, old, body []byte) (bool, error) {
	if err := check(ctx, "swap", key); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.objects[key.String()]; !ok || !bytes.Equal(now.body, old) {
		return false, nil
	}
	if err := s.reserve(int64(len(body) - len(old))); err != nil {
		return false, err
	}
	s.put(key, bytes.Clone(body))
	return true, nil
}

// Delete implements [snapshot.Store].
func (s *Store) Delete(ctx context.Context, key snapshot.Key) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= int64(len(s.objects[key.String()].body))
	delete(s.objects, key.String())
	return nil
}

// List implements [snapshot.Store].
func (s *Store) List(ctx context.Context, folder snapshot.Key, limit int, after string) ([]string, error) {
	if err := check(ctx, "list", folder); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for key := range s.objects {
		name, in := strings.CutPrefix(key, folder.String()+"/")
		if name, _, _ = strings.Cut(name, "/"); in && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // a folder occurs once for each object in it
	return names[:min(limit, len(names))], nil
}

// FreeSpace implements [snapshot.Store].
func (s *Store) FreeSpace(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, "memstore.free_space", "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capacity == 0 {
		return snapshot.Unlimited, nil
	}
	return s.capacity - s.used, nil
}

// Health implements [snapshot.Store]. Memory is always available.
func (s *Store) Health(ctx context.Context) error {
	return fault.Wrap(ctx.Err(), fault.StoreFailed, "memstore.health", "")
}

// Close implements [snapshot.Store].
func (s *Store) Close() error { return nil }
