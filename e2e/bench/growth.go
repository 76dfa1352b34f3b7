package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// rssSessions is the number of sessions with which the daemon's own memory is measured.
const rssSessions = 20

// spareSlots is how many more sessions are allowed than the survey creates, because
// spares are kept only in free slots.
const spareSlots = 8

// growthSurvey measures the cost of many sessions at once.
func growthSurvey(ctx context.Context, b *bench) error {
	s := section{
		title: "Many sessions at once",
		text: `Idle sessions of the probe profile that show the login's page. The create's time is that of the last sessions, which are
created while all earlier ones run. The daemon's memory is its own resident set.`,
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
	b.surveyed = append(b.surveyed, s)
	return nil
}

// grow creates sessions until there are as many as each step says, and measures after
// each step.
func (b *bench) grow(ctx context.Context, engine string, steps []int) (rows [][]string, err error) {
	h, err := b.host(ctx, nil, "--max-sessions", fmt.Sprint(steps[len(steps)-1]+spareSlots))
	defer func() { err = stopHost(h, err) }()
	if err != nil {
		return nil, err
	}
	idle, err := measureCost(ctx, h.chromes)
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
		all, err := measureCost(ctx, h.chromes)
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
		each := all.minus(idle, step)
		rows = append(rows, []string{engine, fmt.Sprint(step), spread(creates).String(), number(megabytes(each.pss)), number(100 * all.cpu), number(megabytes(rss))})
	}
	return rows, nil
}

// stopHost stops a host that was started for one survey, and joins the errors.
func stopHost(h *host, err error) error {
	// The sessions are ended without a save first, because saving them at the stop takes
	// time.
	if h.URL != "" {
		err = errors.Join(err, h.Call(context.Background(), http.MethodDelete, "/v1/sessions?all=true", nil, nil))
	}
	return errors.Join(err, h.stop())
}
