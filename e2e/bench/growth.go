package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// rssSessions is how many sessions the daemon's own memory is judged with.
const rssSessions = 20

// spareRoom is how many more sessions are allowed than there will be: spares are
// kept only in places that no session has.
const spareRoom = 8

// growthSurvey looks at what it costs when more sessions run beside each other.
func growthSurvey(ctx context.Context, b *bench) error {
	s := section{
		title: "Sessions beside each other",
		text: `Sessions of the probe profile that show the page of the login and rest. The create is that of the last ones that came up, with all
before them running; the daemon's own memory is its resident set.`,
		head: []string{"engine", "sessions", "create, ms", "PSS of one, MB", "processor of all, % of a core", "daemon's memory, MB"},
	}
	for _, kind := range []struct {
		engine string
		steps  []int
	}{
		{chrome, []int{1, 5, 10, rssSessions}},
		{shell, []int{1, 10, 20, 50}},
	} {
		rows, err := b.grow(ctx, kind.engine, kind.steps)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.engine, err)
		}
		s.rows = append(s.rows, rows...)
	}
	b.seen = append(b.seen, s)
	return nil
}

// grow lets sessions come up until there are as many as each of the steps says.
func (b *bench) grow(ctx context.Context, engine string, steps []int) (rows [][]string, err error) {
	h, err := b.host(ctx, nil, "--max-sessions", fmt.Sprint(steps[len(steps)-1]+spareRoom))
	defer func() { err = stopped(h, err) }()
	if err != nil {
		return nil, err
	}
	idle, err := look(ctx, h.chromes)
	if err != nil {
		return nil, err
	}
	running := 0
	for _, step := range steps {
		var creates []float64
		for ; running < step; running++ {
			var one *session
			ms, err := timed(func() (err error) {
				one, err = h.create(ctx, obj{"restore_from_environment_id": h.snapshot, "engine": engine})
				return err
			})
			if err != nil {
				return nil, err
			}
			creates = append(creates, ms)
			if err := one.show(ctx, h.me(), loggedIn); err != nil {
				return nil, err
			}
		}
		if err := h.ready(ctx, running); err != nil {
			return nil, err
		}
		all, err := look(ctx, h.chromes)
		if err != nil {
			return nil, err
		}
		rss, err := residentMemory(h.PID())
		if err != nil {
			return nil, err
		}
		if engine == chrome && step == rssSessions {
			own := megabytes(rss)
			b.figures["memory/daemon"] = quartiles{own, own, own}
		}
		each := all.less(idle, step)
		rows = append(rows, []string{engine, fmt.Sprint(step), spread(creates).String(), number(megabytes(each.pss)), number(100 * all.cpu), number(megabytes(rss))})
	}
	return rows, nil
}

// stopped ends a host that was started for one look, and adds what went wrong.
func stopped(h *host, err error) error {
	// Not saved at the stop: that would take its time.
	if h.URL != "" {
		err = errors.Join(err, h.Call(context.Background(), http.MethodDelete, "/v1/sessions?all=true", nil, nil))
	}
	return errors.Join(err, h.stop())
}
