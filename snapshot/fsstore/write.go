package fsstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// upload is a temporary file that becomes an object.
type upload struct {
	store    *Store
	name     string // of the temporary file
	file     *os.File
	sum      hash.Hash
	n        int64
	synced   bool // synced and closed
	finished bool // committed or aborted
}

// Upload implements [snapshot.Store].
func (s *Store) Upload(ctx context.Context) (snapshot.Upload, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, "fsstore.upload", "")
	}
	if s.opts.ReadOnly {
		return nil, readOnly("upload")
	}
	if err := s.before(StepOpen, ""); err != nil {
		return nil, failure("upload", err)
	}
	name := path.Join(tmpDir, rand.Text())
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, failure("upload", err)
	}
	return &upload{store: s, name: name, file: f, sum: sha256.New()}, nil
}

func (s *Store) before(step Step, key string) error {
	if s.opts.Before == nil {
		return nil
	}
	return s.opts.Before(step, key)
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	var failed error
	if failed = u.store.before(StepWrite, ""); failed != nil {
		p = p[:len(p)/2]
	}
	n, err := u.file.Write(p)
	u.sum.Write(p[:n])
	u.n += int64(n)
	return n, failure("write", errors.Join(failed, err))
}

// sync makes the temporary file durable and closes it, once.
func (u *upload) sync() error {
	if u.synced {
		return nil
	}
	u.synced = true
	info, err := u.file.Stat()
	if err == nil && info.Size() != u.n {
		err = errors.New("the file's length differs from the number of bytes written")
	}
	if err == nil {
		err = u.store.before(StepSync, "")
	}
	if err == nil {
		err = u.file.Sync()
	}
	return errors.Join(err, u.file.Close())
}

// matches checks that the written bytes match sum.
func (u *upload) matches(sum snapshot.Sum) error {
	if u.n != sum.Size || [sha256.Size]byte(u.sum.Sum(nil)) != sum.SHA256 {
		return errors.New("the bytes written do not have the expected hash")
	}
	return nil
}

// Commit implements [snapshot.Upload]. It uses a hard link because that fails if the name
// is taken.
func (u *upload) Commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum) (bool, error) {
	linked := ""
	created, err := u.commit(ctx, key, sum, func(name string) error {
		err := u.store.root.Link(u.name, name)
		if err == nil {
			linked = name
		}
		return err
	})
	if err != nil && linked != "" {
		err = errors.Join(err, u.store.root.Remove(linked))
	}
	if created {
		// The temporary name is no longer needed. If it cannot be removed, the next Open
		// removes it.
		_ = u.Abort()
	}
	return created, err
}

// Replace implements [snapshot.Upload].
func (u *upload) Replace(ctx context.Context, key snapshot.Key, sum snapshot.Sum) error {
	_, err := u.commit(ctx, key, sum, func(name string) error {
		u.store.swap.Lock()
		defer u.store.swap.Unlock()
		return u.rename(name)
	})
	return err
}

func (u *upload) rename(name string) error {
	if info, err := u.store.root.Lstat(name); err == nil && info.IsDir() {
		return &fs.PathError{Op: "rename", Path: name, Err: syscall.EISDIR}
	}
	return u.store.root.Rename(u.name, name)
}

func (u *upload) commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum, place func(string) error) (bool, error) {
	s := u.store
	if err := s.check(ctx, "commit", key); err != nil {
		return false, err
	}
	err := u.matches(sum)
	if err == nil {
		err = u.sync()
	}
	if err != nil {
		return false, failure("commit", err)
	}
	name := key.String()
	s.place.RLock()
	defer s.place.RUnlock()
	if err = s.makeFolder(path.Dir(name)); err == nil {
		err = s.before(StepPlace, name)
	}
	if err == nil {
		err = place(name)
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, failure("commit", err)
	}
	if err = s.before(StepSyncTo, name); err == nil {
		err = s.syncFolder(path.Dir(name))
	}
	if err != nil {
		return false, failure("commit", err)
	}
	return true, nil
}

// Abort implements [snapshot.Upload]. After a rename there is no temporary name to
// remove.
func (u *upload) Abort() error {
	if u.finished {
		return nil
	}
	u.finished = true
	var err error
	if !u.synced {
		u.synced = true
		err = u.file.Close()
	}
	removed := u.store.root.Remove(u.name)
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	return failure("abort", errors.Join(err, removed))
}

// Create implements [snapshot.Store].
func (s *Store) Create(ctx context.Context, key snapshot.Key, body []byte) (created bool, err error) {
	err = s.put(ctx, key, body, func(u *upload, sum snapshot.Sum) error {
		created, err = u.Commit(ctx, key, sum)
		return err
	})
	return created, err
}

func (s *Store) put(ctx context.Context, key snapshot.Key, body []byte, commit func(*upload, snapshot.Sum) error) error {
	if err := s.check(ctx, "put", key); err != nil {
		return err
	}
	up, err := s.Upload(ctx)
	if err != nil {
		return err
	}
	u := up.(*upload)
	if _, err = u.Write(body); err == nil {
		err = commit(u, snapshot.Sum{Size: int64(len(body)), SHA256: sha256.Sum256(body)})
	}
	_ = u.Abort() // a failure is harmless, as in Commit
	return err
}

// makeFolder creates a folder and its parents, each durably.
func (s *Store) makeFolder(name string) error {
	if name == "." {
		return nil
	}
	if info, err := s.root.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := s.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	if err := s.root.Mkdir(name, dirMode); err != nil {
		if info, lerr := s.root.Lstat(name); lerr == nil && info.IsDir() {
			return nil // another goroutine created it meanwhile
		}
		if errors.Is(err, fs.ErrExist) { // not the key but a parent folder is taken by a file
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		return err
	}
	return s.syncFolder(path.Dir(name))
}

func (s *Store) syncFolder(name string) error {
	dir, err := s.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
