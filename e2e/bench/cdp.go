package main

import (
	"context"
	"errors"
)

// Sizes of the CDP measurement: blocks of commands alternate between the multiplexer, a
// direct connection and a bare relay.
const (
	cdpBlocks      = 40
	cdpCommands    = 100
	cdpShotBlocks  = 20
	cdpScreenshots = 5

	cpuBlocks   = 10
	cpuCommands = 1500 // that takes some 20 ticks of processor time
)

// noise fills the page so that its screenshot has about a megabyte.
const noise = `(() => {
	const canvas = document.createElement("canvas");
	[canvas.width, canvas.height] = [600, 500];
	const paint = canvas.getContext("2d"), image = paint.createImageData(600, 500);
	for (let i = 0; i < image.data.length; i++) image.data[i] = i % 4 === 3 ? 255 : Math.random() * 256;
	paint.putImageData(image, 0, 0);
	document.body.replaceChildren(canvas);
	return true;
})()`

// cdpSurvey compares a Chrome behind the multiplexer with one that has the same flags
// but its own port, and with one behind a bare relay.
func cdpSurvey(ctx context.Context, b *bench) (err error) {
	s, err := b.ours.create(ctx, obj{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, discard(context.WithoutCancel(ctx), s)) }()
	flags, err := chromeFlags(b.ours.chromes().mains()[0])
	if err != nil {
		return err
	}
	var sides [3]*tab
	servers := [3]server{ours: {endpoint: s.CDP, pid: b.ours.PID()}}
	for side, start := range map[int]starter{direct: b.direct, relayed: b.relayed} {
		started, failed := start(ctx, flags)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, started.end()) }()
		servers[side] = started
	}
	for i := range sides {
		if sides[i], err = front(ctx, servers[i].endpoint); err != nil {
			return err
		}
		defer sides[i].Close()
		var painted bool
		if err := sides[i].visit(ctx, b.site.URL+"/", `document.readyState === "complete"`); err != nil {
			return err
		}
		if err := sides[i].evaluate(ctx, noise, &painted); err != nil {
			return err
		}
	}
	command := func(t *tab) error { return oneCommand(ctx, t) }
	screenshot := func(t *tab) error { return t.Call(ctx, t.session, "Page.captureScreenshot", nil, nil) }
	commands, err := alternate(ctx, cdpBlocks, cdpCommands, sides[:], command)
	if err != nil {
		return err
	}
	used := make([][]float64, len(sides))
	for range cpuBlocks {
		for _, side := range []int{ours, relayed} {
			before := servers[side].ticks()
			for range cpuCommands {
				if err := command(sides[side]); err != nil {
					return err
				}
			}
			used[side] = append(used[side], float64(servers[side].ticks()-before)/ticksPerSecond*1e6/cpuCommands)
		}
	}
	shots, err := alternate(ctx, cdpShotBlocks, cdpScreenshots, sides[:], screenshot)
	if err != nil {
		return err
	}
	b.figures["cdp/extra"] = commands.extra(ours, 1000)
	b.figures["cdp/processor"] = ratios(used[ours], used[relayed])
	b.figures["cdp/screenshots"] = ratios(shots[ours], shots[direct])
	b.surveyed = append(b.surveyed, section{
		title: "CDP through the multiplexer",
		text: `The multiplexer is compared with two Chromes that have the same flags. One has a port instead of the pipe. The pipe of the
other is joined to a WebSocket by a bare relay. The relay is a Go process with two goroutines that pass on each message
unchanged, for one client, without ids, policy or limits. It shows the cost of any process in between on this machine. The same
plain client uses all three over a WebSocket and sends one command after the other, in blocks that alternate. A command is a
script in the page and its answer, so the multiplexer handles two messages. The screenshots have about a megabyte. For a command
and its answer the daemon uses ` + spread(used[ours]).String() + ` µs of processor time, and the bare relay ` + spread(used[relayed]).String() + ` µs.`,
		head: []string{"", "direct, ms", "through the multiplexer, ms", "extra, µs", "×", "through a bare relay, ms", "extra, µs"},
		rows: [][]string{commands.row("a command and its answer"), shots.row("a screenshot")},
	})
	return nil
}

// oneCommand sends a command and waits for its answer.
func oneCommand(ctx context.Context, t *tab) error {
	return t.Call(ctx, t.session, "Runtime.evaluate", obj{"expression": "1"}, nil)
}

// starter starts a Chrome with flags.
type starter func(ctx context.Context, flags []string) (server, error)

// server is a process that clients connect to over CDP.
type server struct {
	endpoint string // its address
	pid      int
	end      func() error // ends it and its Chrome
}

// ticks returns the processor time of the process without its Chrome.
func (s server) ticks() int64 { return below(s.pid, true)[:1].ticks() }

// blockTimes has the duration of one command in each block, in milliseconds, by side.
type blockTimes [][]float64

// The sides of turns.
const (
	ours = iota
	direct
	relayed
)

// alternate runs a command the same number of times in each block, on each side.
func alternate(ctx context.Context, blocks, times int, sides []*tab, do func(*tab) error) (blockTimes, error) {
	all := make(blockTimes, len(sides))
	// The first block is a warm-up and is dropped.
	for block := range blocks + 1 {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		for i, t := range sides {
			each := make([]float64, times)
			for i := range each {
				var err error
				if each[i], err = timed(func() error { return do(t) }); err != nil {
					return all, err
				}
			}
			if block > 0 {
				all[i] = append(all[i], spread(each).median)
			}
		}
	}
	return all, nil
}

// extra returns how much longer a command takes on a side than on a direct connection.
// unit is the number of units in a millisecond.
func (t blockTimes) extra(side int, unit float64) quartiles {
	each := make([]float64, len(t[side]))
	for i := range each {
		each[i] = (t[side][i] - t[direct][i]) * unit
	}
	return spread(each)
}

func (t blockTimes) row(title string) []string {
	return []string{title, spread(t[direct]).String(),
		spread(t[ours]).String(), t.extra(ours, 1000).String(), ratios(t[ours], t[direct]).String(),
		spread(t[relayed]).String(), t.extra(relayed, 1000).String()}
}
