package api

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/save"
)

// fakeUploads accepts files, extensions, imports and documents, and keeps their bytes.
type fakeUploads struct {
	*failing
	uploads map[string][]byte
	dir     string // the folder of a session's files
}

// The documents and the manifest of the fake's agents.
const (
	documentID = "01900000-0000-7000-8000-000000000001"
	manifest   = `{"schemaVersion":"1.0","updatedAt":"2026-11-22T04:34:40.908Z"}`
	document   = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{"a":[{"b":null}]},"appData":{}}`
)

func (f *fakeUploads) MaySave(context.Context, access.Caller, agent.Scope) error { return f.failure() }

// SaveDocument records the body by session, scope, scope ID, ID and latest.
func (f *fakeUploads) SaveDocument(_ context.Context, _ access.Caller, at agent.Scope, id string, body []byte, latest bool) error {
	f.mu.Lock()
	f.uploads[fmt.Sprint(at, id, latest)] = body
	f.mu.Unlock()
	return f.failure()
}

func (f *fakeUploads) Document(context.Context, access.Caller, agent.Scope, string) ([]byte, error) {
	return []byte(document), f.failure()
}

func (f *fakeUploads) DocumentIDs(_ context.Context, _ access.Caller, _ agent.Scope, limit int, _ string) ([]string, string, error) {
	if limit > 1 {
		return nil, "", f.failure()
	}
	return []string{documentID}, documentID, f.failure()
}

func (f *fakeUploads) DeleteDocument(context.Context, access.Caller, agent.Scope, string) error {
	return f.failure()
}

func (f *fakeUploads) Manifest(context.Context, access.Caller, agent.Scope) ([]byte, error) {
	return []byte(manifest), f.failure()
}

func (f *fakeUploads) SaveManifest(_ context.Context, _ access.Caller, at agent.Scope, body []byte) error {
	return f.SaveDocument(context.Background(), access.Caller{}, at, "manifest", body, false)
}

func (f *fakeUploads) DeleteDocuments(context.Context, access.Caller, string) error {
	return f.failure()
}

func (f *fakeUploads) ListFiles(context.Context, access.Caller, string) ([]files.Info, error) {
	return []files.Info{{Name: "a b.html", Size: 4, ModTime: born}}, f.failure()
}

func (f *fakeUploads) OpenFile(_ context.Context, _ access.Caller, _, name string) (*os.File, error) {
	file, err := os.Open(filepath.Join(f.dir, name))
	return file, fault.Wrap(err, fault.FileNotFound, "fake", "")
}

func (f *fakeUploads) PutFile(_ context.Context, _ access.Caller, _, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.uploads[name] = data
	f.mu.Unlock()
	return f.failure()
}

// AddFile stores the file as the first one that has a number.
func (f *fakeUploads) AddFile(ctx context.Context, c access.Caller, id, name string, r io.Reader) (string, error) {
	name += " (1)"
	return name, f.PutFile(ctx, c, id, name, r)
}

func (f *fakeUploads) DeleteFile(context.Context, access.Caller, string, string) error {
	return f.failure()
}

func night() library.Extension {
	return library.Extension{ID: "abcdefghijklmnopabcdefghijklmnop", UserID: "alice", SHA256: strings.Repeat("a1", 32),
		Name: "Night", Version: "1.0", SizeBytes: 5, CreatedAt: born.UTC()}
}

// PutExtension reports a second upload as existing.
func (f *fakeUploads) PutExtension(_ context.Context, _ access.Caller, r io.Reader) (library.Extension, bool, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return library.Extension{}, false, err
	}
	f.mu.Lock()
	_, there := f.uploads["extension"]
	f.uploads["extension"] = data
	f.mu.Unlock()
	return night(), !there, f.failure()
}

func (f *fakeUploads) ListExtensions(context.Context, access.Caller) ([]library.Extension, error) {
	return []library.Extension{night()}, f.failure()
}

func (f *fakeUploads) Extension(context.Context, access.Caller, string) (library.Extension, error) {
	return night(), f.failure()
}

func (f *fakeUploads) DeleteExtension(context.Context, access.Caller, string, bool) error {
	return f.failure()
}

func (f *fakeUploads) Import(_ context.Context, _ access.Caller, r importer.Request, body io.Reader) (importer.Answer, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return importer.Answer{}, fault.Wrap(err, fault.InvalidRequest, "fake", "")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uploads[string(r.Format)+"/"+r.Profile] = data
	info := snapshotInfo()
	info.Label = r.Label
	return importer.Answer{Snapshot: info, Default: &save.DefaultOutcome{Moved: r.SaveAsDefault, Version: 1}}, nil
}
