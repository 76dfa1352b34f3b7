package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

// scenario is one way to get a browser from Stasis: a restore path, or a fresh create.
type scenario struct {
	name, title string
	engine      string
	path        string // in the restore's report; "" for a fresh create
	on          func(*bench) *host
	// body makes what is restored, and adds it to the create's fields.
	body func(context.Context, *host, obj) error
}

// scenarios returns all scenarios.
func scenarios() []scenario {
	ours, cold, light := func(b *bench) *host { return b.ours }, func(b *bench) *host { return b.cold }, func(b *bench) *host { return b.light }
	withStandby := func(b *bench) *host { return b.withStandby }
	return []scenario{
		{"memory", "memory", chrome, "parked", ours, parkedBody},
		{"standby", "filesystem, standby", chrome, "standby", withStandby, defaultBody},
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

// parkedBody parks a browser of the probe profile to be restored.
func parkedBody(ctx context.Context, h *host, fields obj) error {
	s, err := h.atMe(ctx, maps.Clone(fields))
	if err != nil {
		return err
	}
	fields["restore_from_session_id"] = s.ID
	_, err = s.end(ctx, "memory", false)
	return err
}

// defaultBody restores the user's default, for which a standby is kept.
func defaultBody(_ context.Context, _ *host, fields obj) error {
	fields["restore_default_environment_from_user_id"] = ownUser
	return nil
}

// prepare prepares a scenario and waits until all other work has ended.
func (b *bench) prepare(ctx context.Context, w scenario) (*host, obj, error) {
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

// otherTool is another tool's path to the logged-in page, by its name in bench.mjs.
type otherTool struct {
	name, title, do string
	warm            string // name of a browser that stays; "" if each restore starts one on a profile
	chrome          func(settings) string
}

func otherTools() []otherTool {
	full := func(s settings) string { return s.chrome }
	light := func(s settings) string { return s.shell }
	return []otherTool{
		{"state-shell", "Playwright `storageState`, warm headless-shell", "storageState", "shell", light},
		{"state-chrome", "Playwright `storageState`, warm Chromium", "storageState", "chrome", full},
		{"persistent", "Playwright `launchPersistentContext`", "persistentContext", "", full},
		{"userdatadir", "Puppeteer `userDataDir`", "userDataDir", "", full},
	}
}

// restoreMeasures time two goals for every scenario of Stasis and every other tool: a
// page that answers CDP, and the logged-in page in a client library.
func restoreMeasures(ctx context.Context, b *bench) ([]measure, error) {
	var err error
	if b.cold, err = b.host(ctx, []string{"STASIS_SPARES=0"}); err != nil {
		return nil, err
	}
	if b.light, err = b.lightHost(ctx); err != nil {
		return nil, err
	}
	if b.withStandby, err = b.host(ctx, nil); err != nil {
		return nil, err
	}
	if err = b.withStandby.makeStandby(ctx); err != nil {
		return nil, err
	}
	var all []measure
	for _, w := range scenarios() {
		if w.path == "warm" && w.on(b).spares == 0 {
			progress("not measured: %s: the daemon keeps no spares on this machine", w.title)
			continue
		}
		all = append(all,
			measure{"cdp/" + w.name, retryOtherPath(func(ctx context.Context) (map[string]float64, error) { return b.toCDP(ctx, w) })},
			measure{"login/" + w.name, retryOtherPath(func(ctx context.Context) (map[string]float64, error) { return b.toLogin(ctx, w) })})
	}
	for _, r := range otherTools() {
		if r.warm != "" {
			if err := b.node.do(ctx, "warm", obj{"name": r.warm, "chrome": r.chrome(b.settings)}, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", r.title, err)
			}
		}
		all = append(all, measure{"login/" + r.name, func(ctx context.Context) (map[string]float64, error) { return b.timeTool(ctx, r) }})
	}
	return append(all,
		measure{"cdp/bare", func(ctx context.Context) (map[string]float64, error) { return b.bare(ctx, true) }},
		measure{"cdp/bare-empty", func(ctx context.Context) (map[string]float64, error) { return b.bare(ctx, false) }},
	), nil
}

// toCDP times from a create until a script in the front page has answered.
func (b *bench) toCDP(ctx context.Context, w scenario) (map[string]float64, error) {
	h, body, err := b.prepare(ctx, w)
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
	return map[string]float64{"": ms}, errors.Join(w.checkPath(s), discard(ctx, s))
}

// toLogin times from a create until the client library has read the login in the page.
func (b *bench) toLogin(ctx context.Context, w scenario) (map[string]float64, error) {
	h, body, err := b.prepare(ctx, w)
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
	return withTotal(got.Times), errors.Join(w.checkPath(&got.Made), discard(ctx, &got.Made))
}

// errOtherPath says that a restore took another path than the measured one. On a busy
// machine a spare may not be ready yet.
var errOtherPath = errors.New("the restore took another path")

// tries is how often a measure is repeated until the restore takes its path.
const tries = 4

// retryOtherPath repeats a measure if the restore took another path.
func retryOtherPath(take func(context.Context) (map[string]float64, error)) func(context.Context) (map[string]float64, error) {
	return func(ctx context.Context) (got map[string]float64, err error) {
		for range tries {
			if got, err = take(ctx); !errors.Is(err, errOtherPath) {
				break
			}
		}
		return got, err
	}
}

// checkPath fails if the session's restore took another path.
func (w scenario) checkPath(s *session) error {
	if w.path != "" && s.Restored.Path != w.path {
		return fmt.Errorf("%w: %+v", errOtherPath, s.Restored)
	}
	return nil
}

func discard(ctx context.Context, s *session) error {
	_, err := s.end(ctx, "none", false)
	return err
}

// timeTool times another tool.
func (b *bench) timeTool(ctx context.Context, r otherTool) (map[string]float64, error) {
	order := obj{"url": b.ours.me(), "chrome": r.chrome(b.settings)}
	if r.warm != "" {
		order["name"], order["state"] = r.warm, b.state
	} else {
		dir, err := b.copyProfile(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // else it is removed with the scratch folder
		order["dir"] = dir
	}
	if err := settle(ctx); err != nil {
		return nil, err
	}
	return b.node.time(ctx, r.do, order)
}

// bare times Chrome alone, on the probe profile or on an empty one.
func (b *bench) bare(ctx context.Context, onProfile bool) (map[string]float64, error) {
	dir := filepath.Join(b.scratch, "empty")
	if onProfile {
		var err error
		if dir, err = b.copyProfile(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { _ = os.RemoveAll(dir) }() // else it is removed with the scratch folder
	if err := settle(ctx); err != nil {
		return nil, err
	}
	ms, err := bareChrome(ctx, b.chrome, dir)
	return map[string]float64{"": ms}, err
}
