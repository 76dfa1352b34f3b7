package extension

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// maxFetches is how many extensions are fetched at once: the lists of their files take many
// times their size in memory.
const maxFetches = 2

// fetches are the fetches of a store that are under way.
type fetches struct {
	turns chan struct{} // holds one value for each

	mu    sync.Mutex
	ended map[string]chan struct{} // by hash
}

func newFetches() *fetches {
	return &fetches{turns: make(chan struct{}, maxFetches), ended: map[string]chan struct{}{}}
}

// begin waits until no other fetch of this extension is under way, and then for a turn. The
// caller calls end.
func (f *fetches) begin(ctx context.Context, sha string) (end func(), err error) {
	for other := f.enter(sha); other != nil; other = f.enter(sha) {
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case f.turns <- struct{}{}:
		return func() {
			<-f.turns
			f.leave(sha)
		}, nil
	case <-ctx.Done():
		f.leave(sha)
		return nil, ctx.Err()
	}
}

// enter registers a fetch. If another one of this extension is registered, it returns what
// is closed at its end.
func (f *fetches) enter(sha string) (other chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other = f.ended[sha]; other == nil {
		f.ended[sha] = make(chan struct{})
	}
	return other
}

func (f *fetches) leave(sha string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.ended[sha])
	delete(f.ended, sha)
}

// fetch adds the folder of an extension from the catalogue, after the checks of an upload. It
// returns nil if another call has added it meanwhile.
func (s *Store) fetch(ctx context.Context, sha string) (err error) {
	if s.signed == nil {
		return storeError(os.ErrNotExist)
	}
	end, err := s.fetches.begin(ctx, sha)
	if err != nil {
		return err
	}
	defer end()
	if s.has(sha) {
		return nil
	}
	file, err := s.unnamed()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is not needed any more
	packed, err := s.signed.read(ctx, sha, file)
	if err != nil {
		return err
	}
	err = s.unpack(ctx, packed, func(part string, info Info) error {
		if info.SHA256 != sha {
			return invalid("the files have the hash %s", info.SHA256)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		_, err := s.add(part, sha)
		return err
	})
	switch fault.CodeOf(err) {
	case fault.InvalidExtension, fault.Unsupported, fault.TooLarge:
		err = unusable(err)
	}
	return err
}

// unpack checks a packed extension, writes its files into a new folder and calls do, which
// may move the folder. Then it removes the folder.
func (s *Store) unpack(ctx context.Context, packed *io.SectionReader, do func(part string, info Info) error) (err error) {
	part, err := os.MkdirTemp(s.dir, partPrefix)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(os.RemoveAll(part))) }()
	info, err := Write(ctx, packed, packed.Size(), part)
	if err != nil {
		return err
	}
	return do(part, info)
}
