package drive

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/access"
)

// fakeSession is a session with a browser, and that browser.
type fakeSession struct {
	needs access.Permission // required by the last call
	err   error
}

func (o *fakeSession) WithBrowser(ctx context.Context, _ access.Caller, _ string, p access.Permission, do func(context.Context, Chrome) error) error {
	o.needs = p
	return do(ctx, o)
}

func (o *fakeSession) Version() string   { return "1.2" }
func (o *fakeSession) Protocol() string  { return "1.3" }
func (o *fakeSession) UserAgent() string { return "agent" }

func (o *fakeSession) Navigate(_ context.Context, url string) (string, error) {
	return url + "#at", o.err
}

func (o *fakeSession) Screenshot(context.Context) ([]byte, string, string, error) {
	return []byte("jpeg"), "https://a.example/", "A", o.err
}

func (o *fakeSession) Pages(context.Context) ([]browser.Page, error) {
	return []browser.Page{{ID: "T1", Title: "A", URL: "https://a.example/"}}, o.err
}

// Each call requires its permission, and returns Chrome's answer or error.
func TestDriver(t *testing.T) {
	o := &fakeSession{}
	d, ctx := New(o), t.Context()
	for name, call := range map[string]struct {
		do    func() (any, error)
		needs access.Permission
		want  any
	}{
		"navigate":   {func() (any, error) { return d.Navigate(ctx, access.Caller{}, "s", "u") }, access.Drive, "u#at"},
		"screenshot": {func() (any, error) { return d.Screenshot(ctx, access.Caller{}, "s") }, access.Look, Screenshot{[]byte("jpeg"), "https://a.example/", "A"}},
		"pages":      {func() (any, error) { return d.Pages(ctx, access.Caller{}, "s") }, access.Drive, []Page{{"T1", "page", "A", "https://a.example/"}}},
		"version": {func() (any, error) {
			product, protocol, agent, err := d.BrowserVersion(ctx, access.Caller{}, "s")
			return []string{product, protocol, agent}, err
		}, access.Drive, []string{"Chrome/1.2", "1.3", "agent"}},
	} {
		o.err = nil
		got, err := call.do()
		if diff := cmp.Diff(call.want, got); diff != "" || err != nil || o.needs != call.needs {
			t.Errorf("%s: (-want +got)\n%s%v, needs %v", name, diff, err, o.needs)
		}
		o.err = errors.New("broken on purpose")
		if _, err := call.do(); name != "version" && !errors.Is(err, o.err) {
			t.Errorf("%s: %v, want Chrome's error", name, err)
		}
	}
}
