// Package memstore keeps snapshots in memory, for tests and trials. What it
// holds is gone with the process.
package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"path"
	"slices"
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Store is a [snapshot.Store] in memory.
type Store struct {
	capacity int64 // bytes; 0 is unlimited

	mu      sync.Mutex
	objects map[string][]byte
	used    int64 // bytes, with uploads under way
}

var _ snapshot.Store = (*Store)(nil)

// New returns an empty store for at most capacity bytes; 0 is unlimited.
func New(capacity int64) *Store {
	return &Store{capacity: capacity, objects: map[string][]byte{}}
}

func check(ctx context.Context, op string, key snapshot.Key) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.StoreFailed, "memstore."+op, "")
	}
	if key == (snapshot.Key{}) {
		return fault.New(fault.StoreFailed, "memstore."+op, "an empty key names nothing")
	}
	return nil
}

// take reserves n bytes. The caller holds the lock.
func (s *Store) take(n int64) error {
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
	body, ok := s.objects[key.String()]
	if !ok {
		return nil, fault.New(fault.SnapshotNotFound, "memstore.open", "")
	}
	return io.NopCloser(bytes.NewReader(body)), nil
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
	if err := s.take(int64(len(body))); err != nil {
		return false, err
	}
	s.objects[key.String()] = bytes.Clone(body)
	return true, nil
}

// Replace implements [snapshot.Store].
func (s *Store) Replace(ctx context.Context, key snapshot.Key, body []byte) error {
	if err := check(ctx, "replace", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(int64(len(body) - len(s.objects[key.String()]))); err != nil {
		return err
	}
	s.objects[key.String()] = bytes.Clone(body)
	return nil
}

// Delete implements [snapshot.Store].
func (s *Store) Delete(ctx context.Context, key snapshot.Key) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= int64(len(s.objects[key.String()]))
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
		if name := path.Base(key); path.Dir(key) == folder.String() && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(limit, len(names))], nil
}

// Room implements [snapshot.Store].
func (s *Store) Room(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, "memstore.room", "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capacity == 0 {
		return snapshot.Unlimited, nil
	}
	return s.capacity - s.used, nil
}

// Health implements [snapshot.Store]: memory is always there.
func (s *Store) Health(ctx context.Context) error {
	return fault.Wrap(ctx.Err(), fault.StoreFailed, "memstore.health", "")
}

// Close implements [snapshot.Store].
func (s *Store) Close() error { return nil }

type upload struct {
	store *Store
	body  []byte
	gone  bool
}

// Upload implements [snapshot.Store].
func (s *Store) Upload(ctx context.Context) (snapshot.Upload, error) {
	return &upload{store: s}, fault.Wrap(ctx.Err(), fault.StoreFailed, "memstore.upload", "")
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	if err := u.store.take(int64(len(p))); err != nil {
		return 0, err
	}
	u.body = append(u.body, p...)
	return len(p), nil
}

// Commit implements [snapshot.Upload].
func (u *upload) Commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum) (bool, error) {
	if err := check(ctx, "commit", key); err != nil {
		return false, err
	}
	if int64(len(u.body)) != sum.Size || sha256.Sum256(u.body) != sum.SHA256 {
		return false, fault.New(fault.StoreFailed, "memstore.commit", "other bytes were written than the caller counted")
	}
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	if _, taken := u.store.objects[key.String()]; taken {
		return false, nil
	}
	u.store.objects[key.String()] = u.body
	u.gone = true
	return true, nil
}

// Abort implements [snapshot.Upload].
func (u *upload) Abort() error {
	if u.gone {
		return nil
	}
	u.gone = true
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	u.store.used -= int64(len(u.body))
	return nil
}
