package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

// way is a way of ours to come to a browser.
type way struct {
	name, title string
	engine      string
	path        string // of the restore's report; "" for a fresh one
	on          func(*bench) *host
	// body makes what is restored, and adds it to the create's fields.
	body func(context.Context, *host, obj) error
}

// ways are all of ours.
func ways() []way {
	ours, cold, light := func(b *bench) *host { return b.ours }, func(b *bench) *host { return b.cold }, func(b *bench) *host { return b.light }
	standing := func(b *bench) *host { return b.standing }
	return []way{
		{"memory", "memory", chrome, "parked", ours, parkedBody},
		{"standby", "filesystem, standby", chrome, "standby", standing, defaultBody},
		{"warm", "filesystem, warm", chrome, "warm", ours, filesBody},
		{"cold", "filesystem, cold", chrome, "cold", cold, filesBody},
		{"fresh", "fresh, a spare ready", chrome, "", ours, freshBody},
		{"shell-memory", "memory, shell engine", shell, "parked", ours, parkedBody},
		{"shell-warm", "filesystem, warm, shell engine", shell, "warm", light, filesBody},
		{"shell-cold", "filesystem, cold, shell engine", shell, "cold", cold, filesBody},
		{"shell-fresh", "fresh, a spare ready, shell engine", shell, "", light, freshBody},
		{"shell-fresh-cold", "fresh, cold, shell engine", shell, "", cold, freshBody},
	}
}

// The engines of a create.
const (
	chrome = "chrome"
	shell  = "shell"
)

func freshBody(context.Context, *host, obj) error { return nil }

func filesBody(_ context.Context, h *host, fields obj) error {
	fields["restore_from_environment_id"] = h.snapshot
	return nil
}

// parkedBody parks a browser of the probe profile, to come back to.
func parkedBody(ctx context.Context, h *host, fields obj) error {
	s, err := h.atMe(ctx, maps.Clone(fields))
	if err != nil {
		return err
	}
	fields["restore_from_session_id"] = s.ID
	_, err = s.end(ctx, "memory", false)
	return err
}

// defaultBody restores the user's default, which a Chrome stands by with.
func defaultBody(_ context.Context, _ *host, fields obj) error {
	fields["restore_default_environment_from_user_id"] = ownUser
	return nil
}

// readied prepares a way, and waits until nothing else is at work.
func (b *bench) readied(ctx context.Context, w way) (*host, obj, error) {
	h, fields := w.on(b), obj{"engine": w.engine}
	if err := w.body(ctx, h, fields); err != nil {
		return nil, nil, err
	}
	kept := 0
	if w.path == "parked" || w.path == "standby" {
		kept = 1
	}
	return h, fields, h.ready(ctx, kept)
}

// rival is another's way to the logged-in page, by its name in bench.mjs.
type rival struct {
	name, title, do string
	warm            string // a browser that stays; "" for one that is started on a profile
	chrome          func(settings) string
}

func rivals() []rival {
	full := func(s settings) string { return s.chrome }
	light := func(s settings) string { return s.shell }
	return []rival{
		{"state-shell", "Playwright `storageState`, warm headless-shell", "storageState", "shell", light},
		{"state-chrome", "Playwright `storageState`, warm Chromium", "storageState", "chrome", full},
		{"persistent", "Playwright `launchPersistentContext`", "persistentContext", "", full},
		{"userdatadir", "Puppeteer `userDataDir`", "userDataDir", "", full},
	}
}

// restoreMeasures come to a page that answers CDP, and to the logged-in page in
// a client library, in every way of ours and others'.
func restoreMeasures(ctx context.Context, b *bench) ([]measure, error) {
	var err error
	if b.cold, err = b.host(ctx, []string{"STASIS_SPARES=0"}); err != nil {
		return nil, err
	}
	if b.light, err = b.lightHost(ctx); err != nil {
		return nil, err
	}
	if b.standing, err = b.host(ctx, nil); err != nil {
		return nil, err
	}
	if err = b.standing.stand(ctx); err != nil {
		return nil, err
	}
	var all []measure
	for _, w := range ways() {
		if w.path == "warm" && w.on(b).spares == 0 {
			progress("%s is not measured: the daemon keeps no spares here", w.title)
			continue
		}
		all = append(all,
			measure{"cdp/" + w.name, again(func(ctx context.Context) (map[string]float64, error) { return b.toCDP(ctx, w) })},
			measure{"login/" + w.name, again(func(ctx context.Context) (map[string]float64, error) { return b.toLogin(ctx, w) })})
	}
	for _, r := range rivals() {
		if r.warm != "" {
			if err := b.node.do(ctx, "warm", obj{"name": r.warm, "chrome": r.chrome(b.settings)}, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", r.title, err)
			}
		}
		all = append(all, measure{"login/" + r.name, func(ctx context.Context) (map[string]float64, error) { return b.rival(ctx, r) }})
	}
	return append(all,
		measure{"cdp/bare", func(ctx context.Context) (map[string]float64, error) { return b.bare(ctx, true) }},
		measure{"cdp/bare-empty", func(ctx context.Context) (map[string]float64, error) { return b.bare(ctx, false) }},
	), nil
}

// toCDP times a create until a script in the front page has answered.
func (b *bench) toCDP(ctx context.Context, w way) (map[string]float64, error) {
	h, body, err := b.readied(ctx, w)
	if err != nil {
		return nil, err
	}
	var s *session
	ms, err := timed(func() error {
		if s, err = h.create(ctx, body); err != nil {
			return err
		}
		t, err := s.front(ctx)
		if err != nil {
			return err
		}
		defer t.Close()
		var one int
		return t.evaluate(ctx, "1", &one)
	})
	if err != nil {
		return nil, err
	}
	return map[string]float64{"": ms}, errors.Join(w.went(s), thrown(ctx, s))
}

// toLogin times a create until the client library has seen the login in the page.
func (b *bench) toLogin(ctx context.Context, w way) (map[string]float64, error) {
	h, body, err := b.readied(ctx, w)
	if err != nil {
		return nil, err
	}
	var got struct {
		Times map[string]float64
		Made  session
	}
	if err := b.node.do(ctx, "restore", h.order(obj{"body": body, "url": h.me()}), &got); err != nil {
		return nil, err
	}
	got.Made.host = h
	return marked(got.Times), errors.Join(w.went(&got.Made), thrown(ctx, &got.Made))
}

// errOtherWay says that a session came another way than the one that is
// measured: on a busy machine a spare may not be ready yet.
var errOtherWay = errors.New("it came another way")

// tries is how often a way is asked for until it is the one that is taken.
const tries = 4

// again takes a measure anew where the session came another way.
func again(take func(context.Context) (map[string]float64, error)) func(context.Context) (map[string]float64, error) {
	return func(ctx context.Context) (got map[string]float64, err error) {
		for range tries {
			if got, err = take(ctx); !errors.Is(err, errOtherWay) {
				break
			}
		}
		return got, err
	}
}

// went fails where the session came another way than the one that is measured.
func (w way) went(s *session) error {
	if w.path != "" && (s.Restored == nil || s.Restored.Path != w.path) {
		return fmt.Errorf("%w: %+v", errOtherWay, s.Restored)
	}
	return nil
}

func thrown(ctx context.Context, s *session) error {
	_, err := s.end(ctx, "none", false)
	return err
}

// rival times another's way.
func (b *bench) rival(ctx context.Context, r rival) (map[string]float64, error) {
	order := obj{"url": b.ours.me(), "chrome": r.chrome(b.settings)}
	if r.warm != "" {
		order["name"], order["state"] = r.warm, b.state
	} else {
		dir, err := b.copyProfile(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // with the scratch folder at the latest
		order["dir"] = dir
	}
	if err := settle(ctx); err != nil {
		return nil, err
	}
	return b.node.time(ctx, r.do, order)
}

// bare times Chrome alone, on the probe profile or on none.
func (b *bench) bare(ctx context.Context, onProfile bool) (map[string]float64, error) {
	dir := filepath.Join(b.scratch, "empty")
	if onProfile {
		var err error
		if dir, err = b.copyProfile(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { _ = os.RemoveAll(dir) }() // with the scratch folder at the latest
	if err := settle(ctx); err != nil {
		return nil, err
	}
	ms, err := bareChrome(ctx, b.chrome, dir)
	return map[string]float64{"": ms}, err
}
