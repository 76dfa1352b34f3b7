package fsstore

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/fault"
)

// FreeSpace implements [snapshot.Store]. It returns the file system's free space for users
// other than root, or 0 if there are no free inodes.
func (s *Store) FreeSpace(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, "fsstore.free_space", "")
	}
	dir, err := s.root.Open(".")
	if err != nil {
		return 0, failure("free_space", err)
	}
	var st unix.Statfs_t
	err = errors.Join(unix.Fstatfs(int(dir.Fd()), &st), dir.Close())
	if err != nil {
		return 0, failure("free_space", err)
	}
	if st.Files > 0 && st.Ffree == 0 {
		return 0, nil
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// Health implements [snapshot.Store]. It writes, syncs and removes a file. A read-only
// store only reads.
func (s *Store) Health(ctx context.Context) error {
	if s.opts.ReadOnly {
		_, err := s.names(".")
		return failure("health", errors.Join(ctx.Err(), err))
	}
	up, err := s.Upload(ctx)
	if err != nil {
		return err
	}
	u := up.(*upload)
	_, err = u.Write([]byte("health"))
	if err == nil {
		err = failure("health", u.sync())
	}
	return errors.Join(err, u.Abort())
}
