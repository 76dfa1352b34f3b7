package sqldb_test

import (
	"bytes"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// hooked calls hook before each read and each write.
type hooked struct {
	io.ReaderAt
	io.Writer
	hook func()
}

func (h hooked) ReadAt(p []byte, off int64) (int, error) {
	h.hook()
	return h.ReaderAt.ReadAt(p, off)
}

func (h hooked) Write(p []byte) (int, error) {
	h.hook()
	return h.Writer.Write(p)
}

// endConnections ends all connections to a database.
func endConnections(t *testing.T, address string) {
	t.Helper()
	at, err := url.Parse(address)
	if err == nil {
		err = server.Server(t).Exec(t.Context(), strings.TrimPrefix(at.Path, "/"),
			"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An upload whose connection is lost halfway is recorded with all its files, or not at all. A
// read whose connection is lost fails.
func TestPackedExtensionLost(t *testing.T) {
	address := server.Database(t)
	db := open(t, address)
	files := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // eight rows
	put := func(hook func()) error {
		packed := io.NewSectionReader(hooked{ReaderAt: bytes.NewReader(files), hook: hook}, 0, int64(len(files)))
		_, _, _, err := db.Extensions.PutExtension(t.Context(), profiles.Extension{ID: "x", UserID: "ada", SHA256: "00", CreatedAt: noon}, packed)
		return err
	}
	// rarely calls do at the third of each so many calls.
	rarely := func(each int, do func()) func() {
		n := 0
		return func() {
			if n++; n%each == 3 {
				do()
			}
		}
	}
	end := func() { endConnections(t, address) }

	if err := put(rarely(4, end)); !fault.Is(err, fault.CatalogueUnavailable) {
		t.Errorf("an upload whose connections are all lost: %v", err)
	}
	until(t, "the catalogue can be read", func() bool { return db.Health(t.Context()) == nil })
	if _, err := db.Extensions.Extension(t.Context(), "ada", "x"); !fault.Is(err, fault.ExtensionNotFound) {
		t.Errorf("the record: %v", err)
	}
	if err := db.Extensions.PackedExtension(t.Context(), "00", io.Discard); !fault.Is(err, fault.ExtensionNotFound) {
		t.Errorf("the files: %v", err)
	}

	if err := put(rarely(1000, end)); err != nil {
		t.Errorf("an upload whose first connection is lost: %v", err)
	}
	err := db.Extensions.PackedExtension(t.Context(), "00", hooked{Writer: io.Discard, hook: rarely(1000, end)})
	if !fault.Is(err, fault.CatalogueUnavailable) {
		t.Errorf("a read whose connection is lost: %v", err)
	}
	var got bytes.Buffer
	until(t, "the catalogue can be read", func() bool { return db.Health(t.Context()) == nil })
	if err := db.Extensions.PackedExtension(t.Context(), "00", &got); err != nil || !bytes.Equal(got.Bytes(), files) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}
