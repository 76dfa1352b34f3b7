package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// How many browsers memorySurvey measures at once, and for how long.
const (
	memorySessions = 3
	cpuTime        = 4 * time.Second
)

// ticksPerSecond is the unit in which /proc counts processor time: USER_HZ, 100 on every
// Linux that Go runs on.
const ticksPerSecond = 100

// cost is what processes use.
type cost struct {
	pss int64   // bytes
	cpu float64 // share of one core
}

// measureCost returns what a tree of processes uses now, with its processor time over a while.
// It calls of again afterwards, because processes start and end.
func measureCost(ctx context.Context, of func() tree) (cost, error) {
	if err := settle(ctx); err != nil {
		return cost{}, err
	}
	before, start := of().ticks(), time.Now()
	select {
	case <-time.After(cpuTime):
	case <-ctx.Done():
		return cost{}, ctx.Err()
	}
	after := of()
	used := float64(after.ticks()-before) / ticksPerSecond
	return cost{pss: after.pss(), cpu: used / time.Since(start).Seconds()}, nil
}

// minus subtracts the cost before, and divides the rest by n.
func (c cost) minus(before cost, n int) cost {
	return cost{pss: (c.pss - before.pss) / int64(n), cpu: (c.cpu - before.cpu) / float64(n)}
}

func (c cost) row(title string) []string {
	return []string{title, number(megabytes(c.pss)), number(100 * c.cpu)}
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// residentMemory returns a process's resident memory, in bytes.
func residentMemory(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return kilobytes(string(raw), "VmRSS:") << 10, err
}

// memorySurvey measures idle browsers: running ones that show the login's page, and the
// same ones parked.
func memorySurvey(ctx context.Context, b *bench) (err error) {
	s := section{
		title: "Memory and processor time of one browser",
		text: `The process tree of one idle browser: its proportional set size (PSS, which divides shared memory among the processes that
share it) and its share of one core. Running and parked browsers show the login's page; a spare is empty. A full page has
decoded 24 pictures and released 1,000,000 objects. Chrome returns such memory when it is parked.`,
		head: []string{"browser", "PSS, MB", "processor, % of a core"},
	}
	h, err := b.host(ctx, nil)
	defer func() { err = stopHost(h, err) }()
	if err != nil {
		return err
	}
	idle, err := measureCost(ctx, h.chromes)
	if err != nil {
		return err
	}
	if h.spares > 0 {
		s.rows = append(s.rows, idle.minus(cost{}, h.spares).row("chrome, spare"))
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
	defer func() { err = stopHost(light, err) }()
	if err != nil {
		return err
	}
	if idle, err = measureCost(ctx, light.chromes); err != nil {
		return err
	}
	s.rows = append(s.rows, idle.minus(cost{}, light.spares).row("shell, spare"))
	b.surveyed = append(b.surveyed, s)
	return nil
}

// fullPage fills a page's memory with data that Chrome can release.
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

// runningAndParked measures sessions of an engine while they run and after they are
// parked. script fills their pages; "" for none. idle is the cost of the daemon without
// them.
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
		now, err := measureCost(ctx, h.chromes)
		if err != nil {
			return nil, err
		}
		rows = append(rows, now.minus(idle, memorySessions).row(of+", "+state))
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
