package profilestest

import (
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

func (f *fixture) claim(a profiles.Answer, fresh bool) profiles.Answer {
	f.Helper()
	known, got, err := f.c.Answers.ClaimAnswer(f.ctx, a)
	f.must(err)
	if got != fresh {
		f.Errorf("claim of %s %s: fresh %t", a.Scope, a.Key, got)
	}
	return known
}

func testAnswers(f *fixture) {
	first := profiles.Answer{Scope: "key POST /v1/sessions", Key: "k", BodyHash: "hash", CreatedAt: start}
	f.same(f.claim(first, true), first)
	again := first
	again.BodyHash, again.CreatedAt = "another", start.Add(time.Hour)
	f.same(f.claim(again, false), first)

	done := first
	done.Status, done.Body = 201, []byte("\x00 any bytes \xff")
	f.must(f.c.Answers.FinishAnswer(f.ctx, profiles.Answer{Scope: first.Scope, Key: "k", Status: done.Status, Body: done.Body}))
	f.same(f.claim(again, false), done)

	late := done
	late.Status = 500
	f.code(f.c.Answers.FinishAnswer(f.ctx, late), fault.NotFound)
	f.same(f.claim(again, false), done)

	other := first
	other.Scope = "another key"
	f.same(f.claim(other, true), other)

	f.must(f.c.Answers.DropAnswer(f.ctx, first.Scope, "k"))
	f.must(f.c.Answers.DropAnswer(f.ctx, first.Scope, "k"))
	f.same(f.claim(again, true), again)
	f.must(f.c.Answers.DropAnswer(f.ctx, first.Scope, "k"))
	f.code(f.c.Answers.FinishAnswer(f.ctx, done), fault.NotFound)
	f.same(f.claim(other, false), other)
}

func testAnswerRace(f *fixture) {
	var fresh atomic.Int32
	f.together(20, func(_ int, c Catalogue) {
		_, first, err := c.Answers.ClaimAnswer(f.ctx, profiles.Answer{Scope: "s", Key: "k", BodyHash: "hash", CreatedAt: start})
		f.code(err, "")
		if first {
			fresh.Add(1)
		}
	})
	if n := fresh.Load(); n != 1 {
		f.Errorf("%d claims were fresh", n)
	}
}

func testAnswersExpire(f *fixture) {
	at := func(key string, d time.Duration) profiles.Answer {
		return profiles.Answer{Scope: "s", Key: key, CreatedAt: start.Add(d)}
	}
	old, exact, recent := at("old", -time.Millisecond), at("exact", 0), at("recent", time.Hour)
	for _, a := range []profiles.Answer{old, exact, recent} {
		f.claim(a, true)
	}
	exact.Status = 201
	f.must(f.c.Answers.FinishAnswer(f.ctx, exact))
	f.must(f.c.Answers.ExpireAnswers(f.ctx, start))
	f.claim(old, true)
	f.same(f.claim(exact, false), exact)
	f.same(f.claim(recent, false), recent)

	chosen := at("chosen", time.Hour)
	chosen.Body = []byte(`{"session_id":"s"}`)
	f.same(f.claim(chosen, true), chosen)
	f.must(f.c.Answers.DropUnfinishedAnswers(f.ctx))
	f.claim(recent, true)
	f.same(f.claim(at("chosen", time.Hour), false), chosen) // what it has made may live on another node
	f.same(f.claim(exact, false), exact)
}
