package s3store

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"os"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// upload is a local file that will be sent to the bucket. It has no name, so it
// disappears with the process.
type upload struct {
	store *Store
	file  *os.File // nil once it is no longer needed
	sum   hash.Hash
	n     int64
}

// Upload implements [snapshot.Store].
func (s *Store) Upload(ctx context.Context) (snapshot.Upload, error) {
	const op = "upload"
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, "s3store."+op, "")
	}
	if s.opts.ReadOnly {
		return nil, fault.New(fault.StoreFailed, "s3store."+op, "the store was opened read-only")
	}
	f, err := os.CreateTemp(s.opts.Spool, "upload-")
	if err != nil {
		return nil, s.failure(op, err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, s.failure(op, errors.Join(err, f.Close()))
	}
	return &upload{store: s, file: f, sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	n, err := u.file.Write(p)
	u.sum.Write(p[:n])
	u.n += int64(n)
	return n, u.store.failure("write", err)
}

// Commit implements [snapshot.Upload].
func (u *upload) Commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum) (bool, error) {
	return u.commit(ctx, key, sum, condition{absent: true})
}

// Replace implements [snapshot.Upload].
func (u *upload) Replace(ctx context.Context, key snapshot.Key, sum snapshot.Sum) error {
	_, err := u.commit(ctx, key, sum, condition{})
	return err
}

func (u *upload) commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum, c condition) (bool, error) {
	const op = "commit"
	s := u.store
	if err := s.checkWrite(ctx, op, key); err != nil {
		return false, err
	}
	if u.n != sum.Size || [sha256.Size]byte(u.sum.Sum(nil)) != sum.SHA256 {
		return false, fault.New(fault.StoreFailed, "s3store."+op, "the bytes written do not have the expected hash")
	}
	done, err := s.put(ctx, s.name(key.String()), body{u.file, sum}, c)
	if done {
		_ = u.Abort() // the file is no longer needed; the bucket has its contents
	}
	return done, s.failure(op, err)
}

// Abort implements [snapshot.Upload].
func (u *upload) Abort() error {
	if u.file == nil {
		return nil
	}
	err := u.file.Close()
	u.file = nil
	return u.store.failure("abort", err)
}
