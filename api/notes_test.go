package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Fields of a note that the API does not know reach the service as they were written,
// beside those that a note had before. Null means absence here too.
func TestUnknownFieldsOfNotes(t *testing.T) {
	r := newRig(t, nil)
	answer, body := r.do(t, "POST", "/memory/v2/session",
		`{"session_id":"s","mood":{"b":1.50,"a":[null,"<"]},"extra":{"read":"before","mood":"old"},"none":null,"Open_Tasks":["other case"],"replace":true}`)
	if answer.StatusCode != 200 || len(r.notes) != 1 {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	got := map[string]string{}
	for name, value := range r.notes[0].Extra {
		got[name] = string(value)
	}
	want := map[string]string{"mood": `"old"`, "read": `"before"`, "Open_Tasks": `["other case"]`}
	if diff := cmp.Diff(want, got); diff != "" || !r.notes[0].Replace || r.notes[0].ProjectPath != nil {
		t.Errorf("%+v (-want +got):\n%s", r.notes[0], diff)
	}
	r.do(t, "POST", "/memory/v2/session", `{"session_id":"s","mood":{"b":1.50,"a":[null,"\u003c"]}}`)
	if got, want := string(r.notes[1].Extra["mood"]), `{"b":1.50,"a":[null,"\u003c"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
