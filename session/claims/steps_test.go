package claims_test

import (
	"context"
	"io"

	"github.com/stasisd/stasis/snapshot"
)

// steps calls at before each step of a node, and after each one that returned without an
// error: the calls of its store that write or look for an archive, and its claims.
type steps struct {
	snapshot.Store
	snapshot.Uses
	at func(name string) error
}

func step[T any](s *steps, name string, do func() (T, error)) (T, error) {
	if err := s.at("before " + name); err != nil {
		var none T
		return none, err
	}
	result, err := do()
	if err == nil {
		err = s.at("after " + name)
	}
	return result, err
}

func (s *steps) ReserveArchive(ctx context.Context, a, id string) (bool, error) {
	return step(s, "reserve", func() (bool, error) { return s.Uses.ReserveArchive(ctx, a, id) })
}

func (s *steps) BeginRemoval(ctx context.Context, a, id string) (bool, error) {
	return step(s, "begin removal", func() (bool, error) { return s.Uses.BeginRemoval(ctx, a, id) })
}

func (s *steps) EndRemoval(ctx context.Context, a string) error {
	_, err := step(s, "end removal", func() (bool, error) { return true, s.Uses.EndRemoval(ctx, a) })
	return err
}

func (s *steps) Delete(ctx context.Context, key snapshot.Key) error {
	_, err := step(s, "delete "+key.String(), func() (bool, error) { return true, s.Store.Delete(ctx, key) })
	return err
}

func (s *steps) Open(ctx context.Context, key snapshot.Key) (io.ReadCloser, error) {
	return step(s, "open", func() (io.ReadCloser, error) { return s.Store.Open(ctx, key) })
}

func (s *steps) Create(ctx context.Context, key snapshot.Key, body []byte) (bool, error) {
	return step(s, "create", func() (bool, error) { return s.Store.Create(ctx, key, body) })
}

func (s *steps) Swap(ctx context.Context, key snapshot.Key, old, body []byte) (bool, error) {
	return step(s, "swap", func() (bool, error) { return s.Store.Swap(ctx, key, old, body) })
}

func (s *steps) Upload(ctx context.Context) (snapshot.Upload, error) {
	up, err := step(s, "upload", func() (snapshot.Upload, error) { return s.Store.Upload(ctx) })
	return &upload{up, s}, err
}

type upload struct {
	snapshot.Upload
	s *steps
}

func (u *upload) Commit(ctx context.Context, key snapshot.Key, sum snapshot.Sum) (bool, error) {
	return step(u.s, "commit", func() (bool, error) { return u.Upload.Commit(ctx, key, sum) })
}
