// Package faultstore makes a [snapshot.Store] fail on purpose. Tests use it to check what
// remains after a failure.
package faultstore

import (
	"context"
	"io"
	"sync"

	"github.com/stasisd/stasis/snapshot"
)

// Mode is how a call fails.
type Mode int

const (
	// Refuse fails before the call does anything; a write writes half.
	Refuse Mode = iota
	// Lose makes the call and then fails, like a lost response.
	Lose
	// Dead refuses this call and every later one.
	Dead
)

// Store forwards calls to another store and makes one of them fail. Every method but
// Close counts as a call. So do an upload's Write, Commit and Replace and an opened
// object's Read.
type Store struct {
	inner snapshot.Store

	mu    sync.Mutex
	calls int
	at    int // the call that fails, from 1; 0 means none
	mode  Mode
	err   error
}

var _ snapshot.Store = (*Store)(nil)

// New returns a store that does not fail yet.
func New(inner snapshot.Store) *Store { return &Store{inner: inner} }

// FailAt makes the nth call from now on fail with err. If n is 0, no call fails.
func (s *Store) FailAt(n int, mode Mode, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.at, s.mode, s.err = 0, n, mode, err
}

// Calls counts the calls since FailAt or New.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// next counts a call. refuse is the error to return before the call, lose the error to
// return after it.
func (s *Store) next() (refuse, lose error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	switch {
	case s.at == 0 || s.calls < s.at, s.calls > s.at && s.mode != Dead:
		return nil, nil
	case s.mode == Lose:
		return nil, s.err
	}
	return s.err, nil
}

// do makes one call, which may fail as planned.
func (s *Store) do(call func() error) error {
	refuse, lose := s.next()
	if refuse != nil {
		return refuse
	}
	if err := call(); err != nil {
		return err
	}
	return lose
}

// Open implements [snapshot.Store].
func (s *Store) Open(ctx context.Context, key snapshot.Key) (io.ReadCloser, error) {
	var r io.ReadCloser
	err := s.do(func() (err error) { r, err = s.inner.Open(ctx, key); return err })
	if err != nil {
		if r != nil {
			_ = r.Close() // the planned error is the one to return
		}
		return nil, err
	}
	return &reader{ReadCloser: r, store: s}, nil
}

// Create implements [snapshot.Store].
func (s *Store) Create(ctx context.Context, key snapshot.Key, body []byte) (created bool, err error) {
	err = s.do(func() (err error) { created, err = s.inner.Create(ctx, key, body); return err })
	return created && err == nil, err
}

// Stat implements [snapshot.Store].
func (s *Store) Stat(ctx context.Context, key snapshot.Key) (st snapshot.Stat, err error) {
	err = s.do(func() (err error) { st, err = s.inner.Stat(ctx, key); return err })
	return st, err
}

// Swap implements [snapshot.Store].
func (s *Store) Swap(ctx context.Context, key snapshot.Key, old, body []byte) (swapped bool, err error) {
	err = s.do(func() (err error) { swapped, err = s.inner.Swap(ctx, key, old, body); return err })
	return swapped && err == nil, err
}

// Delete implements [snapshot.Store].
func (s *Store) Delete(ctx context.Context, key snapshot.Key) error {
	return s.do(func() error { return s.inner.Delete(ctx, key) })
}

// List implements [snapshot.Store].
func (s *Store) List(ctx context.Context, folder snapshot.Key, limit int, after string) (names []string, err error) {
	err = s.do(func() (err error) { names, err = s.inner.List(ctx, folder, limit, after); return err })
	return names, err
}

// FreeSpace implements [snapshot.Store].
func (s *Store) FreeSpace(ctx context.Context) (free int64, err error) {
	err = s.do(func() (err error) { free, err = s.inner.FreeSpace(ctx); return err })
	return free, err
}

// Health implements [snapshot.Store].
func (s *Store) Health(ctx context.Context) error {
	return s.do(func() error { return s.inner.Health(ctx) })
}

// Close implements [snapshot.Store]. It never fails on purpose.
func (s *Store) Close() error { return s.inner.Close() }

// Upload implements [snapshot.Store].
func (s *Store) Upload(ctx context.Context) (snapshot.Upload, error) {
	var up snapshot.Upload
	err := s.do(func() (err error) { up, err = s.inner.Upload(ctx); return err })
	if err != nil {
		if up != nil {
			_ = up.Abort()
		}
		return nil, err
	}
	return &upload{Upload: up, store: s}, nil
}

type upload struct {
	snapshot.Upload
	store *Store
}

func (u *upload) Write(p []byte) (int, error) {
	refuse, lose := u.store.next()
	if refuse != nil {
		n, _ := u.Upload.Write(p[:len(p)/2])
		return n, refuse
	}
	n, err := u.Upload.Write(p)
	if err == nil {
		err = lose
	}
	return n, err
}

func (u *upload) Commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum) (created bool, err error) {
	err = u.store.do(func() (err error) { created, err = u.Upload.Commit(ctx, key, sum); return err })
	return created && err == nil, err
}

func (u *upload) Replace(ctx context.Context, key snapshot.Key, sum snapshot.Sum) error {
	return u.store.do(func() error { return u.Upload.Replace(ctx, key, sum) })
}

type reader struct {
	io.ReadCloser
	store *Store
}

func (r *reader) Read(p []byte) (int, error) {
	refuse, lose := r.store.next()
	if refuse != nil {
		return 0, refuse
	}
	n, err := r.ReadCloser.Read(p)
	if lose != nil {
		return n, lose
	}
	return n, err
}
