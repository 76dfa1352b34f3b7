package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// manyMemory is the limit of a daemon's memory, in bytes, while many requests are sent
// at once.
const manyMemory = 768 << 20

// TestAttackManyAtOnce sends many requests at once, each within its own limits. The daemon's
// memory does not grow with their number, and all are answered.
func TestAttackManyAtOnce(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Unraced: true}))
	_, view := keyWith(t, d, "eve", "view")
	_, use := keyWith(t, d, "eve", "use")
	crowded := `{"goal":[` + strings.Repeat("[],", 340_000) + `[]]}`
	document := `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40Z","appData":{},"data":{` + manyNames(15<<20) + `"x":1}}`
	texts := packed(t, map[string]string{"manifest.json": `{"manifest_version":3,"name":"__MSG_x__","version":"1","default_locale":"en"}`,
		"_locales/en/messages.json": `{` + manyMessages(4<<20-100) + `"x":{"message":"X"}}`})
	for _, test := range []struct {
		name, key, method, path, media, body string
		times, status                        int
		says                                 string // the answer
	}{
		{"crowded bodies", view, "POST", "/v1/sessions", "application/json", crowded, 40, http.StatusBadRequest, "more than 20000 values"},
		{"documents", use, "PUT", "/v1/sessions/s/scopes/agent/a/snapshots/latest", "application/json", document, 4, http.StatusNoContent, ""},
		{"read documents", view, "GET", "/v1/sessions/s/scopes/agent/a/snapshots/latest", "", "", 4, http.StatusOK, ""},
		{"a zip with another list of files", use, "POST", "/v1/extensions", "application/zip", zip64Extension(2_200_000), 1, http.StatusUnprocessableEntity, ""},
		{"extensions with many texts", use, "POST", "/v1/extensions", "application/zip", texts, 5, 0, ""},
		{"an extension with many folders", use, "POST", "/v1/extensions", "application/zip", manyFolders(t), 1, http.StatusRequestEntityTooLarge, ""},
	} {
		forgetPeak(t, d)
		header := http.Header{"X-Api-Key": {test.key}, "Authorization": {""}}
		if test.media != "" {
			header.Set("Content-Type", test.media)
		}
		var all sync.WaitGroup
		for range test.times {
			all.Go(func() {
				status, body := send(t, d, test.method, test.path, header.Clone(), strings.NewReader(test.body))
				if test.status != 0 && status != test.status || status >= 500 || !strings.Contains(body, test.says) {
					t.Errorf("%s: %d %.300s", test.name, status, body)
				}
			})
		}
		all.Wait()
		peak := peakMemory(t, d.PID())
		t.Logf("%s: %d times %d bytes took %d MB", test.name, test.times, len(test.body), peak>>20)
		if peak > manyMemory {
			t.Errorf("%s: %d times %d bytes took %d MB", test.name, test.times, len(test.body), peak>>20)
		}
	}
}

// manyMessages returns members of a translations file, of a size in bytes.
func manyMessages(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size-40; n++ {
		fmt.Fprintf(&b, `"%x":{},`, n)
	}
	return b.String()
}

func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, content := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// manyFolders is a zip with few files whose names contain very many folders.
func manyFolders(t *testing.T) string {
	files := map[string]string{}
	for n := range 15_000 {
		files[strings.Repeat(fmt.Sprintf("%016d/", n), 22)+"f"] = ""
	}
	return packed(t, files)
}

// zip64Extension is a zip whose end record names a short list of files. Its zip64 end
// record (APPNOTE.TXT 4.3.14), which readers prefer, names many.
func zip64Extension(files int) string {
	var out bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&out, binary.LittleEndian, v) // never fails (bytes.Buffer)
		}
	}
	out.WriteString("PK\x03\x04" + strings.Repeat("\x00", 26))
	list := out.Len()
	for range files {
		out.WriteString("PK\x01\x02" + strings.Repeat("\x00", 42))
	}
	end := out.Len()
	put([]byte("PK\x06\x06"), uint64(44), uint16(45), uint16(45), uint32(0), uint32(0), uint64(files), uint64(files), uint64(end-list), uint64(list))
	put([]byte("PK\x06\x07"), uint32(0), uint64(end), uint32(1))
	short := out.Len()
	put([]byte("PK\x05\x06"), uint16(0), uint16(0), uint16(0xffff), uint16(0xffff), uint32(1000), uint32(short-1000), uint16(0))
	return out.String()
}
