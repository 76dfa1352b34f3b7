package memstore

import (
	"context"
	"crypto/sha256"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// upload is an object that is being written to the store.
type upload struct {
	store    *Store
	body     []byte
	finished bool
}

// Upload implements [snapshot.Store].
func (s *Store) Upload(ctx context.Context) (snapshot.Upload, error) {
	return &upload{store: s}, fault.Wrap(ctx.Err(), fault.StoreFailed, "memstore.upload", "")
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	if err := u.store.reserve(int64(len(p))); err != nil {
		return 0, err
	}
	u.body = append(u.body, p...)
	return len(p), nil
}

// Commit implements [snapshot.Upload].
func (u *upload) Commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum) (bool, error) {
	if err := u.check(ctx, "commit", key, sum); err != nil {
		return false, err
	}
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	if _, taken := u.store.objects[key.String()]; taken {
		return false, nil
	}
	u.store.put(key, u.body)
	u.finished = true
	return true, nil
}

// Replace implements [snapshot.Upload].
func (u *upload) Replace(ctx context.Context, key snapshot.Key, sum snapshot.Sum) error {
	if err := u.check(ctx, "replace", key, sum); err != nil {
		return err
	}
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	u.store.used -= int64(len(u.store.objects[key.String()].body))
	u.store.put(key, u.body)
	u.finished = true
	return nil
}

func (u *upload) check(ctx context.Context, op string, key snapshot.Key, sum snapshot.Sum) error {
	if err := check(ctx, op, key); err != nil {
		return err
	}
	if int64(len(u.body)) != sum.Size || sha256.Sum256(u.body) != sum.SHA256 {
		return fault.New(fault.StoreFailed, "memstore."+op, "the bytes written do not have the expected hash")
	}
	return nil
}

// Abort implements [snapshot.Upload].
func (u *upload) Abort() error {
	if u.finished {
		return nil
	}
	u.finished = true
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	u.store.used -= int64(len(u.body))
	return nil
}
