package mux

import (
	"encoding/json"
	"errors"
	"testing"
)

// finished is a folder of downloads that records what was moved.
type finished map[string]string

func (f finished) Finish(guid, suggested string) (string, error) {
	if guid == "bad" {
		return "", errors.New("no space")
	}
	f[guid] = suggested
	return "1-" + suggested, nil
}

// A complete download is moved before a client learns that it is complete, and filePath is
// its name among the session's files, never a path of the machine.
func TestCompleteDownload(t *testing.T) {
	moved := finished{}
	m, f := start(t, Options{Downloads: moved}, nil)
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Browser.getVersion", "{}") // it is attached
	f.emit("S1", "Browser.downloadWillBegin", `{"guid":"a","suggestedFilename":"report.txt"}`)
	f.emit("S1", "Browser.downloadProgress", `{"guid":"a","state":"inProgress"}`)
	f.emit("S1", "Browser.downloadProgress", `{"guid":"a","state":"completed","filePath":"/run/in/a","receivedBytes":8}`)
	f.emit("S1", "Page.downloadProgress", `{"guid":"bad","state":"completed","filePath":"/run/in/bad"}`)
	want := []map[string]any{
		{"guid": "a", "suggestedFilename": "report.txt"}, {"guid": "a", "state": "inProgress"},
		{"guid": "a", "state": "completed", "filePath": "1-report.txt", "receivedBytes": 8.0}, {"guid": "bad", "state": "completed"},
	}
	for _, w := range want {
		var got map[string]any
		if err := json.Unmarshal(c.recv().Params, &got); err != nil {
			t.Fatal(err)
		}
		if text, expected := encode(t, got), encode(t, w); text != expected {
			t.Errorf("the client got %s, want %s", text, expected)
		}
		if got["state"] == "completed" && moved["a"] != "report.txt" {
			t.Errorf("the file was not moved before the event: %v", moved)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
