package mux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestFrames(t *testing.T) {
	want := []string{"a", "", strings.Repeat("b", 200<<10), "c", strings.Repeat("d", 3<<20), "e"}
	whole := strings.Join(want, "\x00") + "\x00"
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(whole), "halves": iotest.HalfReader(strings.NewReader(whole)),
		"with EOF": iotest.DataErrReader(strings.NewReader(whole)),
	} {
		in, got := frames{r: r}, []string{}
		for {
			b, _, err := in.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(name, err)
			}
			got = append(got, string(b))
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s: %d messages, want %d", name, len(got), len(want))
		}
	}
	in := frames{r: strings.NewReader("a\x00b")}
	if b, _, err := in.next(); string(b) != "a" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if _, _, err := in.next(); err != io.ErrUnexpectedEOF {
		t.Errorf("a message cut short: %v", err)
	}
}

func TestRebuiltMessages(t *testing.T) {
	e, err := scan([]byte(` { "id" : 3 , "result":{"a":"}\\\"{","b":[1,{"c":null}]}, "sessionId":"S" , "extra":[[]] } `))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(reply([]byte("7"), e, "")), `{"id":7,"result":{"a":"}\\\"{","b":[1,{"c":null}]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(request(9, "S", []byte("A.b"), nil)), `{"id":9,"method":"A.b","sessionId":"S"}`+"\x00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(failure(nil, nil, &cdpError{-1, `a "b"`})), `{"error":{"code":-1,"message":"a \"b\""}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever a client sends, the message to Chrome is one JSON message, and contains the
// method and parameters that the table has checked.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"A.b","params":{"x":"\"}"},"sessionId":"S"}`, `{"id":1,"method":"A.b"}{}`, `{"method":"a","id":-5,"x":[{}]}`,
		"{\"id\":1,\"method\":\"A.b\",\"params\":{\"a\":\"\x00\"}}", `{"id":1,/**/"method":"A.b"}`, `{"id":1,"method":"A\u002eb"}`, `{"id":1,"id":2,"method":"A.b"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, bad := parseRequest(b)
		if bad != nil {
			return
		}
		msg := request(1, string(e.session), e.method, e.params)
		if n := bytes.IndexByte(msg, 0); n != len(msg)-1 {
			t.Fatalf("a NUL at %d of %q", n, msg)
		}
		msg = msg[:len(msg)-1]
		if !jsontext.Value(msg).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			t.Fatalf("%q is not valid JSON", msg)
		}
		var want, got struct {
			ID        json.RawMessage
			Method    string
			SessionID string `json:"sessionId"`
			Params    json.RawMessage
		}
		if json.Unmarshal(msg, &got) != nil || got.Method != string(e.method) {
			t.Fatalf("%q does not say %q", msg, e.method)
		}
		if !bytes.Contains(bytes.ToLower(b), []byte(`"method"`)) || json.Unmarshal(b, &want) != nil {
			return
		}
		if again, err := scan(msg); err != nil || string(again.params) != string(e.params) || string(again.session) != string(e.session) {
			t.Fatalf("%q parses differently: %v", msg, err)
		}
	})
}

// In valid JSON the scanner finds the same members as a complete parser.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{"a":[1,2,"\\"]},"sessionId":"S"}`))
	f.Add([]byte(`{"method":"A.b","params":{}}`))
	f.Add([]byte(`{"x":{"id":1},"error":{"code":-1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole map[string]jsontext.Value
		fs := fields{}
		if !jsontext.Value(b).IsValid() || fs.read(b) != nil {
			_, _ = scan(b) // must not panic
			return
		}
		whole = fs
		e, err := scan(b)
		if err != nil {
			return // names with escapes, or an unexpected type
		}
		for name, got := range map[string][]byte{"id": e.id, "params": e.params, "result": e.result, "error": e.err} {
			if string(got) != string(whole[name]) {
				t.Fatalf("%s of %q: %q, want %q", name, b, got, whole[name])
			}
		}
		if want := string(whole["method"]); e.method != nil && want != fmt.Sprintf(`"%s"`, e.method) {
			t.Fatalf("method of %q: %q, want %q", b, e.method, want)
		}
	})
}

func screenshot(n int) []byte {
	return fmt.Appendf(nil, `{"id":1,"result":{"data":"%s"},"sessionId":"S"}`, strings.Repeat("QUJD", n/4))
}

func BenchmarkScreenshotToClient(b *testing.B) {
	msg := screenshot(8 << 20)
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		e, err := scan(msg)
		if err != nil || len(reply([]byte("77"), e, "")) == 0 {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemcpy(b *testing.B) {
	msg := screenshot(8 << 20)
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		if len(bytes.Clone(msg)) == 0 {
			b.Fatal()
		}
	}
}

func BenchmarkRequestFromClient(b *testing.B) {
	msg := []byte(`{"id":12,"method":"Runtime.callFunctionOn","params":{"functionDeclaration":"() => document.title","objectId":"1.2.3","arguments":[{"value":1}],"returnByValue":true},"sessionId":"0123456789ABCDEF0123456789ABCDEF"}`)
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		e, bad := parseRequest(msg)
		if bad != nil || len(request(1, string(e.session), e.method, e.params)) == 0 {
			b.Fatal(bad)
		}
	}
}

func BenchmarkLargeRequestFromClient(b *testing.B) {
	msg := fmt.Appendf(nil, `{"id":1,"method":"Fetch.fulfillRequest","params":{"body":"%s"}}`, strings.Repeat("QUJD", 2<<20))
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		if e, bad := parseRequest(msg); bad != nil || len(request(1, "", e.method, e.params)) == 0 {
			b.Fatal(bad)
		}
	}
}

func BenchmarkFrames(b *testing.B) {
	msg := append(screenshot(8<<20), 0)
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		in := frames{r: chunks{bytes.NewReader(msg)}}
		if got, _, err := in.next(); err != nil || len(got) != len(msg)-1 {
			b.Fatal(err)
		}
	}
}

// chunks reads like a pipe, at most 64 KiB at a time.
type chunks struct{ r io.Reader }

func (c chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), 64<<10)]) }
