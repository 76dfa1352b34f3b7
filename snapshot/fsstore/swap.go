package fsstore

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Swap implements [snapshot.Store]. Only this process writes to the folder, so a mutex
// around the comparison and the rename makes them atomic.
func (s *Store) Swap(ctx context.Context, key snapshot.Key, old, body []byte) (swapped bool, err error) {
	err = s.put(ctx, key, body, func(u *upload, sum snapshot.Sum) error {
		_, err := u.commit(ctx, key, sum, func(name string) error {
			s.swap.Lock()
			defer s.swap.Unlock()
			same, err := s.holds(ctx, key, old)
			if same && err == nil {
				swapped = true
				err = u.rename(name)
			}
			return err
		})
		return err
	})
	return swapped && err == nil, err
}

// holds reports whether an object exists with exactly these bytes.
func (s *Store) holds(ctx context.Context, key snapshot.Key, want []byte) (same bool, err error) {
	f, err := s.Open(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	return bytes.Equal(now, want), err
}
