package session

import (
	"io"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
)

// A long upload or download ends when its key is deleted, and changes nothing.
func TestDeletedKeyEndsUploadsAndDownloads(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	made, err := r.Import(ctx, keeper, importer.Request{Format: library.FormatPlaywright}, strings.NewReader(storageStateFile))
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := r.apiKeys.CreateKey(ctx, admin, access.KeyOptions{Name: "leaver", UserID: "alice", Rights: keeper.Rights})
	if err != nil {
		t.Fatal(err)
	}
	c := access.Caller{KeyID: k.ID, UserID: k.UserID, Rights: k.Rights}
	archive, err := r.library.Archive(ctx, c, made.Snapshot.ID)
	if err != nil {
		t.Fatal(err)
	}
	uploads := map[string]func(io.Reader) error{
		"an import": func(body io.Reader) error {
			_, err := r.Import(ctx, c, importer.Request{Format: library.FormatPlaywright, SaveAsDefault: true}, body)
			return err
		},
		"an extension": func(body io.Reader) error {
			_, _, err := r.uploaded.PutExtension(ctx, c, body)
			return err
		},
	}
	outcomes := map[string]chan error{}
	var bodies []*io.PipeWriter
	for name, upload := range uploads {
		body, to := io.Pipe()
		outcome := make(chan error, 1)
		outcomes[name], bodies = outcome, append(bodies, to)
		go func() {
			outcome <- upload(body)
			_ = body.Close()
		}()
		if _, err := io.WriteString(to, " "); err != nil { // the body is being read
			t.Fatal(err)
		}
	}
	if err := r.apiKeys.DeleteKey(ctx, admin, k.ID); err != nil {
		t.Fatal(err)
	}
	for _, to := range bodies {
		go func() {
			_, _ = io.WriteString(to, storageStateFile) // the body may no longer be read
			_ = to.Close()
		}()
	}
	for name, outcome := range outcomes {
		if err := <-outcome; !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s of a deleted key: %v", name, err)
		}
	}
	if _, err := io.ReadAll(archive); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("an archive that is being read, key deleted: %v", err)
	}
	if err := archive.Close(); err != nil {
		t.Error(err)
	}
	_, err = r.library.Default(ctx, admin, "alice")
	wantCode(t, err, fault.DefaultNotFound)
	if _, err := r.library.Archive(ctx, c, made.Snapshot.ID); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("an archive requested with a deleted key: %v", err)
	}
	if err := r.library.DeleteSnapshot(ctx, alice, made.Snapshot.ID); err != nil {
		t.Errorf("the snapshot is still held: %v", err)
	}
}
