package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// What a look at memory and processor time takes: so many browsers, for so long.
const (
	memorySessions = 3
	cpuLook        = 4 * time.Second
)

// ticksPerSecond is in which parts of a second /proc counts processor time:
// USER_HZ, 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// cost is what processes take.
type cost struct {
	pss int64   // bytes
	cpu float64 // share of one core
}

// look gives what a tree takes now, its processor time over a while. tree is
// asked again after it: processes come and go.
func look(ctx context.Context, of func() tree) (cost, error) {
	if err := settle(ctx); err != nil {
		return cost{}, err
	}
	before, start := of().ticks(), time.Now()
	select {
	case <-time.After(cpuLook):
	case <-ctx.Done():
		return cost{}, ctx.Err()
	}
	after := of()
	used := float64(after.ticks()-before) / ticksPerSecond
	return cost{pss: after.pss(), cpu: used / time.Since(start).Seconds()}, nil
}

// less takes away what was there before, and divides the rest among n.
func (c cost) less(before cost, n int) cost {
	return cost{pss: (c.pss - before.pss) / int64(n), cpu: (c.cpu - before.cpu) / float64(n)}
}

func (c cost) row(title string) []string {
	return []string{title, number(megabytes(c.pss)), number(100 * c.cpu)}
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// residentMemory is a process's resident memory, in bytes.
func residentMemory(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return kilobytes(string(raw), "VmRSS:") << 10, err
}

// memorySurvey looks at browsers at rest: running ones that show the page of
// the login, and the same ones parked.
func memorySurvey(ctx context.Context, b *bench) (err error) {
	s := section{
		title: "Memory and processor time of one browser",
		text: `Of the process tree of one, at rest: the proportional set size (what processes share is divided among them), and the share of
one core. Running and parked ones show the page of the login; a spare is empty. A full page has decoded 24 pictures and left 1,000,000
objects behind: what a Chrome gives back when it is parked.`,
		head: []string{"browser", "PSS, MB", "processor, % of a core"},
	}
	h, err := b.host(ctx, nil)
	defer func() { err = stopped(h, err) }()
	if err != nil {
		return err
	}
	idle, err := look(ctx, h.chromes)
	if err != nil {
		return err
	}
	if h.spares > 0 {
		s.rows = append(s.rows, idle.less(cost{}, h.spares).row("chrome, spare"))
	}
	for _, engine := range []string{chrome, shell} {
		for _, page := range []string{"", fullPage} {
			rows, err := h.runningAndParked(ctx, engine, page, idle)
			if err != nil {
				return fmt.Errorf("%s: %w", engine, err)
			}
			s.rows = append(s.rows, rows...)
		}
	}
	light, err := b.lightHost(ctx)
	defer func() { err = stopped(light, err) }()
	if err != nil {
		return err
	}
	if idle, err = look(ctx, light.chromes); err != nil {
		return err
	}
	s.rows = append(s.rows, idle.less(cost{}, light.spares).row("shell, spare"))
	b.seen = append(b.seen, s)
	return nil
}

// fullPage fills a page's memory with what it can do without.
const fullPage = `(async () => {
	const canvas = document.createElement("canvas");
	canvas.width = canvas.height = 1000;
	canvas.getContext("2d").fillRect(0, 0, 500, 500);
	for (let i = 0; i < 24; i++) {
		const picture = new Image();
		picture.src = URL.createObjectURL(await new Promise(done => canvas.toBlob(done)));
		document.body.append(picture);
		await picture.decode();
	}
	let left = [];
	for (let i = 0; i < 1e6; i++) left.push({i, text: "number " + i});
	left = null;
	return true;
})()`

// runningAndParked looks at some sessions of an engine, and at what becomes of
// them when they are parked. A script, unless it is "", has filled their pages;
// idle is what the daemon has without them.
func (h *host) runningAndParked(ctx context.Context, engine, script string, idle cost) (rows [][]string, err error) {
	of := engine
	if script != "" {
		of += " with a full page"
	}
	var running []*session
	for range memorySessions {
		one, err := h.atMe(ctx, obj{"engine": engine})
		if err != nil {
			return nil, err
		}
		if script != "" {
			if err := one.run(ctx, script); err != nil {
				return nil, err
			}
		}
		running = append(running, one)
	}
	for _, state := range []string{"running", "parked"} {
		if err := h.ready(ctx, memorySessions); err != nil {
			return nil, err
		}
		now, err := look(ctx, h.chromes)
		if err != nil {
			return nil, err
		}
		rows = append(rows, now.less(idle, memorySessions).row(of+", "+state))
		for i, one := range running {
			if state == "parked" {
				err = h.forget(ctx, one.snapshot)
			} else {
				running[i].snapshot, err = one.end(ctx, "memory", false)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}
