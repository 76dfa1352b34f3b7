package main

import (
	"context"
	"errors"
)

// How CDP is timed: blocks of commands, through the multiplexer and on a
// direct connection in turn.
const (
	cdpBlocks      = 40
	cdpCommands    = 100
	cdpShotBlocks  = 20
	cdpScreenshots = 5
)

// noise fills the page with what makes a large picture, about a megabyte.
const noise = `(() => {
	const canvas = document.createElement("canvas");
	[canvas.width, canvas.height] = [600, 500];
	const paint = canvas.getContext("2d"), image = paint.createImageData(600, 500);
	for (let i = 0; i < image.data.length; i++) image.data[i] = i % 4 === 3 ? 255 : Math.random() * 256;
	paint.putImageData(image, 0, 0);
	document.body.replaceChildren(canvas);
	return true;
})()`

// cdpSurvey speaks to a Chrome through the multiplexer, to one that runs with
// the very same flags but a port of its own, and to one through a bare relay.
func cdpSurvey(ctx context.Context, b *bench) (err error) {
	s, err := b.ours.create(ctx, obj{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, thrown(context.WithoutCancel(ctx), s)) }()
	flags, err := chromeFlags(b.ours.chromes().mains()[0])
	if err != nil {
		return err
	}
	var sides [3]*tab
	endpoints := [3]string{ours: s.CDP}
	for side, start := range map[int]starter{direct: b.direct, relayed: b.relayed} {
		endpoint, end, failed := start(ctx, flags)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, end()) }()
		endpoints[side] = endpoint
	}
	for i, endpoint := range endpoints {
		if sides[i], err = front(ctx, endpoint); err != nil {
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
	command := func(t *tab) error {
		return t.Call(ctx, t.session, "Runtime.evaluate", obj{"expression": "1"}, nil)
	}
	screenshot := func(t *tab) error { return t.Call(ctx, t.session, "Page.captureScreenshot", nil, nil) }
	commands, err := inTurn(ctx, cdpBlocks, cdpCommands, sides, command)
	if err != nil {
		return err
	}
	shots, err := inTurn(ctx, cdpShotBlocks, cdpScreenshots, sides, screenshot)
	if err != nil {
		return err
	}
	b.figures["cdp/extra"] = commands.extra(ours, 1000)
	b.figures["cdp/screenshots"] = ratios(shots[ours], shots[direct])
	b.seen = append(b.seen, section{
		title: "CDP through the multiplexer",
		text: `Beside it are Chromes with the very same flags: one with a port in place of the pipe, and one whose pipe a bare relay joins with
a WebSocket. The relay is a process of two goroutines that pass on each message as it is, for one client, without ids, policy or
limits: what it takes is the price of any process in between, written in Go, on this machine. The same plain client speaks to
all over a WebSocket, one command after the other, in blocks that take turns. A command is a script in the page and its answer,
so the multiplexer handles two messages. Screenshots are of a page whose picture is about a megabyte.`,
		head: []string{"", "direct, ms", "through the multiplexer, ms", "more, µs", "×", "through a bare relay, ms", "more, µs"},
		rows: [][]string{commands.row("a command and its answer"), shots.row("a screenshot")},
	})
	return nil
}

// starter starts a Chrome with flags, and gives its CDP address and what ends it.
type starter func(ctx context.Context, flags []string) (endpoint string, end func() error, err error)

// turns are what one command took in each block, in milliseconds, by side.
type turns [3][]float64

// The sides of turns.
const (
	ours = iota
	direct
	relayed
)

// inTurn does a command so many times in each of the blocks, on each side.
func inTurn(ctx context.Context, blocks, times int, sides [3]*tab, do func(*tab) error) (turns, error) {
	var all turns
	// A block before the first is thrown away.
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

// extra is how much more it took on a side than on a direct connection, in a
// unit of which there are so many in a millisecond.
func (t turns) extra(side int, unit float64) quartiles {
	each := make([]float64, len(t[side]))
	for i := range each {
		each[i] = (t[side][i] - t[direct][i]) * unit
	}
	return spread(each)
}

func (t turns) row(title string) []string {
	return []string{title, spread(t[direct]).String(),
		spread(t[ours]).String(), t.extra(ours, 1000).String(), ratios(t[ours], t[direct]).String(),
		spread(t[relayed]).String(), t.extra(relayed, 1000).String()}
}
