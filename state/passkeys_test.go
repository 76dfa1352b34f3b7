package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

func TestPasskeysGiven(t *testing.T) {
	yes, no := true, false
	held := state.Passkeys{Credentials: []state.Passkey{{RPID: "a.example"}}}
	for name, test := range map[string]struct {
		saved state.Passkeys
		asked *bool
		want  bool
	}{
		"nothing":                {state.Passkeys{}, nil, false},
		"asked for":              {state.Passkeys{}, &yes, true},
		"an empty authenticator": {state.Passkeys{Enabled: true}, nil, true},
		"credentials":            {held, nil, true},
		"not wanted":             {held, &no, false},
	} {
		if got := test.saved.EnabledFor(test.asked); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPasskeyLines(t *testing.T) {
	saved := state.Passkeys{Enabled: true, Credentials: []state.Passkey{
		{ID: []byte("1"), RPID: "b.example"}, {ID: []byte("2"), RPID: "a.example"}, {ID: []byte("3"), RPID: "b.example"}}}
	name := state.ComponentPasskeys
	given := state.PasskeyLines(saved, true, map[string]bool{"3": true})
	want := []state.Component{{Name: name, Origin: "a.example", Saved: 1, Restored: 1},
		{Name: name, Origin: "b.example", Saved: 2, Restored: 1, Dropped: 1, Reason: report.Refused.Reason()}}
	if diff := cmp.Diff(want, given, cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range state.PasskeyLines(saved, false, nil) {
		if line.Dropped != line.Saved || line.Restored != 0 || line.Reason.Code != report.PasskeysUnwanted {
			t.Errorf("%+v", line)
		}
	}
}

func TestPasskeysSelected(t *testing.T) {
	doc := state.Document{Passkeys: state.Passkeys{Enabled: true, Credentials: []state.Passkey{{RPID: "a.example"}, {RPID: "b.example"}}}}
	left, lines := state.Selection{Exclude: []string{"b.example"}}.Document(doc)
	if diff := cmp.Diff([]state.Passkey{{RPID: "a.example"}}, left.Passkeys.Credentials); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []state.Component{{Name: state.ComponentPasskeys, Origin: "b.example", Saved: 1, Dropped: 1, Reason: report.LeftOut.Reason()}}
	if diff := cmp.Diff(want, lines, cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
