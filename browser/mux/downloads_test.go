package mux

import (
	"encoding/json"
	"errors"
	"slices"
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

func (f finished) Size() int64 { return int64(len(f)) * 10 }

// cancels returns the parameters of the commands that cancel downloads, in order, once
// there are n.
func (f *fake) cancels(n int) (params []string) {
	f.t.Helper()
	for _, m := range f.wait(n, method("Browser.cancelDownload")) {
		params = append(params, string(m.Params))
	}
	return params
}

// Above the limit the largest running download is cancelled, once, in whichever browser
// context it is. Complete downloads count until they are deleted.
func TestDownloadsExceedLimit(t *testing.T) {
	moved := finished{}
	m, f := start(t, Options{Downloads: moved, MaxDownloads: 100}, nil)
	exceeded := make(chan string, 9)
	defer m.OnPageEvent(func(e PageEvent) {
		if e.Method == DownloadsExceeded {
			exceeded <- string(e.Params)
		}
	}, false)()
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Browser.getVersion", "{}") // it is attached
	m.mu.Lock()
	m.targets.contexts["C"] = struct{}{}
	m.mu.Unlock()
	event := func(name, params string) {
		f.emit("S1", "Browser.download"+name, params)
		c.recv()
	}
	for _, guid := range []string{"a", "b", "c"} {
		event("WillBegin", `{"guid":"`+guid+`","suggestedFilename":"f"}`)
	}
	event("Progress", `{"guid":"a","state":"completed","receivedBytes":60}`)
	event("Progress", `{"guid":"b","state":"inProgress","receivedBytes":30}`)
	event("Progress", `{"guid":"c","state":"inProgress","receivedBytes":60}`) // with a: 150, but the folder has 10 only: a was replaced
	if len(exceeded) > 0 {
		t.Error("a download was cancelled at the limit")
	}
	event("Progress", `{"guid":"b","state":"inProgress","receivedBytes":31}`)
	event("Progress", `{"guid":"c","state":"inProgress","receivedBytes":70}`)
	event("Progress", `{"guid":"b","state":"inProgress","receivedBytes":32}`)
	event("Progress", `{"guid":"c","state":"canceled","receivedBytes":0}`)
	event("Progress", `{"guid":"b","state":"inProgress","receivedBytes":91}`)
	want := []string{`{"guid":"c","browserContextId":"C"}`, `{"guid":"c"}`, `{"guid":"b","browserContextId":"C"}`, `{"guid":"b"}`}
	if got := f.cancels(len(want)); !slices.Equal(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	if first, second := <-exceeded, <-exceeded; first != `{"guid":"c"}` || second != `{"guid":"b"}` || len(exceeded) > 0 {
		t.Errorf("listeners got %s, %s and %d more", first, second, len(exceeded))
	}
}

// Small downloads may be complete before Chrome reports any progress. One that begins above
// the limit is cancelled too.
func TestDownloadBeginsAboveLimit(t *testing.T) {
	moved := finished{"old": "f"}
	m, f := start(t, Options{Downloads: moved, MaxDownloads: 9}, nil)
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Browser.getVersion", "{}") // it is attached
	f.emit("S1", "Browser.downloadWillBegin", `{"guid":"a","suggestedFilename":"f"}`)
	c.recv()
	if got := f.cancels(1); !slices.Equal(got, []string{`{"guid":"a"}`}) {
		t.Errorf("%s", got)
	}
}

// A download that the server interrupted for good is cancelled, because Chrome would keep
// its file.
func TestInterruptedDownload(t *testing.T) {
	m, f := start(t, Options{Downloads: finished{}}, nil)
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Browser.getVersion", "{}") // it is attached
	f.emit("S1", "Browser.downloadWillBegin", `{"guid":"a","suggestedFilename":"f"}`)
	f.emit("S1", "Page.downloadProgress", `{"guid":"a","state":"canceled","receivedBytes":60}`)
	f.emit("S1", "Browser.downloadProgress", `{"guid":"a","state":"canceled","receivedBytes":60}`)
	for range 3 {
		c.recv()
	}
	if got := f.cancels(1); !slices.Equal(got, []string{`{"guid":"a"}`}) {
		t.Errorf("%s", got)
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
