package api

import (
	"context"
	"sync/atomic"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/settings"
)

// fakeUsers has the defaults and settings of users, and records whose were requested.
type fakeUsers struct {
	*failing
	users    []string
	settings settings.Settings
	rates    []quota.Rate
	overRate error
	managing atomic.Bool // what the last call of TakeRequest said
}

func (f *fakeUsers) version(user string) library.Default {
	f.mu.Lock()
	f.users = append(f.users, user)
	f.mu.Unlock()
	return library.Default{UserID: user, Version: 2, SnapshotID: "snap-1", MovedAt: born}
}

func (f *fakeUsers) Settings(context.Context, access.Caller, string) (settings.Settings, error) {
	return f.settings, f.failure()
}

func (f *fakeUsers) Use(_ context.Context, _ string, set settings.Settings) (map[quota.Name]quota.Used, error) {
	use := map[quota.Name]quota.Used{}
	for _, name := range quota.Names() {
		use[name] = quota.Used{}
	}
	if set.Quotas != nil {
		use[quota.Sessions] = quota.Used{Limit: set.Quotas.Sessions}
	}
	return use, nil
}

func (f *fakeUsers) KeyUse(ctx context.Context, k access.Key) (map[quota.Name]quota.Used, error) {
	use, err := f.Use(ctx, "", settings.Settings{Quotas: &k.Quotas})
	delete(use, quota.Standbys)
	return use, err
}

// TakeRequest refuses every request if the fake's limit of requests is reached.
func (f *fakeUsers) TakeRequest(_ context.Context, _ access.Caller, managing bool) ([]quota.Rate, error) {
	f.managing.Store(managing)
	return f.rates, f.overRate
}

func (f *fakeUsers) ChangeSettings(_ context.Context, _ access.Caller, _ string, change func(settings.Settings) (settings.Settings, error)) (settings.Settings, error) {
	set, err := change(f.settings)
	if err != nil {
		return set, err
	}
	f.settings = set
	return set, f.failure()
}

// CheckDefault reports that the user is not logged in.
func (f *fakeUsers) CheckDefault(_ context.Context, _ access.Caller, user string) (login.Outcome, error) {
	_ = f.version(user)
	return *outcome(), f.failure()
}

func outcome() *login.Outcome {
	at, status, snap, version := "https://a.example/login", int64(302), "snap-1", int64(2)
	return &login.Outcome{CheckedAt: born.UTC(), URL: &at, Status: &status, SnapshotID: &snap, Version: &version,
		Conditions: []browser.Condition{{Kind: browser.ConditionStatus}}, DurationMS: 640}
}

func (f *fakeUsers) LastCheck(context.Context, access.Caller, string) (*login.Outcome, error) {
	return outcome(), f.failure()
}

func (f *fakeUsers) Default(_ context.Context, _ access.Caller, user string) (library.Default, error) {
	return f.version(user), f.failure()
}

func (f *fakeUsers) SetDefault(_ context.Context, _ access.Caller, user, _ string, _ *int64) (library.Default, error) {
	return f.version(user), f.failure()
}

func (f *fakeUsers) DeleteDefault(context.Context, access.Caller, string) error { return f.failure() }

func (f *fakeUsers) DefaultHistory(_ context.Context, _ access.Caller, user string, _ int, _ string) ([]library.PastDefault, string, error) {
	gone := library.Default{UserID: user, Version: 3, MovedAt: born}
	return []library.PastDefault{{Default: gone}, {Default: f.version(user), Available: true}}, "2", f.failure()
}
