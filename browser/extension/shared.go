package extension

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stasisd/stasis/fault"
)

// Shared keeps extensions in a catalogue that several nodes share. Its folder has copies of
// those that this node has used, and can be removed while the daemon does not run. Its methods
// are safe for concurrent use.
type Shared struct {
	local  *Store
	signed *Signed
	alone  string // the folder of a Store
}

// OpenShared opens the extensions of a node. dir is the folder of the copies, alone the one of
// the [Store] in which this daemon kept extensions before it was a node; see [Shared.Adopt].
func OpenShared(dir, alone string, signed *Signed) (*Shared, error) {
	local, err := OpenStore(dir, signed)
	return &Shared{local: local, signed: signed, alone: alone}, err
}

// Put is as [Store.Put]. record gets the packed files and stores them with the record.
func (s *Shared) Put(ctx context.Context, r io.Reader, turn func(context.Context) (leave func(), err error), record Record) error {
	return s.local.receive(ctx, r, turn, func(part string, info Info) error {
		unused, err := s.record(ctx, part, info, record)
		if err != nil {
			return err
		}
		s.local.mu.Lock()
		defer s.local.mu.Unlock()
		// The upload is complete. What fails here, a later fetch or sweep makes up for.
		_, _ = s.local.add(part, info.SHA256)
		if unused != "" && unused != info.SHA256 {
			_ = s.local.remove(unused)
		}
		return nil
	})
}

func (s *Shared) record(ctx context.Context, folder string, info Info, record Record) (unused string, err error) {
	file, err := s.local.unnamed()
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it is not needed any more
	packed, err := s.signed.pack(ctx, folder, info.SHA256, file)
	if err != nil {
		return "", err
	}
	return record(info, packed)
}

// Copy is as [Store.Copy].
func (s *Shared) Copy(ctx context.Context, sha, to string) error { return s.local.Copy(ctx, sha, to) }

// Delete is as [Store.Delete]. Other nodes remove their copies in a [Shared.Sweep].
func (s *Shared) Delete(forget func() (sha string, err error)) error {
	sha, err := forget()
	if err != nil || sha == "" {
		return err
	}
	s.local.mu.Lock()
	defer s.local.mu.Unlock()
	_ = s.local.remove(sha) // else a sweep does
	return nil
}

// Sweep removes the copies of extensions that no record names any more, and what uploads that
// were not recorded have left in the catalogue.
func (s *Shared) Sweep(ctx context.Context) error {
	copies, err := folders(s.local.dir) // before the records are read: an upload is recorded before its copy is added
	if err != nil {
		return err
	}
	stored, err := s.signed.catalogue.ExtensionFiles(ctx)
	if err != nil {
		return err
	}
	err = s.signed.catalogue.RemoveUnusedExtensions(ctx)
	for _, sha := range copies {
		if _, named := stored[sha]; named {
			continue
		}
		s.local.mu.Lock()
		err = errors.Join(err, s.local.remove(sha))
		s.local.mu.Unlock()
	}
	return err
}

// Adopt stores the files of this machine that records name and the catalogue lacks: those of
// a daemon that was no node. It leaves other files in the folder of that daemon, because they
// may be of another catalogue. lost are the hashes of files that neither the catalogue nor
// this machine has.
func (s *Shared) Adopt(ctx context.Context) (lost []string, err error) {
	stored, err := s.signed.catalogue.ExtensionFiles(ctx)
	if err != nil {
		return nil, err
	}
	own, err := folders(s.alone)
	if err != nil {
		return nil, err
	}
	for sha, has := range stored {
		if slices.Contains(own, sha) {
			err = errors.Join(err, s.adopt(ctx, sha, has))
		} else if !has && !s.local.has(sha) {
			lost = append(lost, sha)
		} else if !has {
			err = errors.Join(err, s.give(ctx, sha, filepath.Join(s.local.dir, sha)))
		}
	}
	slices.Sort(lost)
	return lost, err
}

// adopt stores the files of the former daemon, if the catalogue lacks them, and makes its
// folder a copy.
func (s *Shared) adopt(ctx context.Context, sha string, stored bool) error {
	from := filepath.Join(s.alone, sha)
	if !stored {
		if err := s.give(ctx, sha, from); err != nil {
			return err
		}
	}
	s.local.mu.Lock()
	defer s.local.mu.Unlock()
	if s.local.has(sha) {
		return storeError(os.RemoveAll(from))
	}
	return storeError(os.Rename(from, filepath.Join(s.local.dir, sha)))
}

// give stores the files of a folder in the catalogue.
func (s *Shared) give(ctx context.Context, sha, folder string) error {
	info, err := Inspect(ctx, folder)
	if err != nil {
		return err
	}
	if info.SHA256 != sha {
		return fault.New(fault.StoreFailed, "extension.adopt", "the files of extension %s have changed; delete the extension and upload it again", info.ID)
	}
	file, err := s.local.unnamed()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is not needed any more
	packed, err := s.signed.pack(ctx, folder, sha, file)
	if err != nil {
		return err
	}
	return s.signed.catalogue.AddPackedExtension(ctx, sha, packed)
}

// folders lists the hashes of the extensions in a store's folder, which may be missing.
func folders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, storeError(err)
	}
	var all []string
	for _, e := range entries {
		if shaPattern.MatchString(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all, nil
}
