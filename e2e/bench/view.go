package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sizes of the measurement of the live view.
const (
	viewInputs     = 60
	viewSlowInputs = 20
	viewPause      = 1500 * time.Millisecond // after which the live view is sharp
	viewStill      = 20 * time.Second
	viewBlocks     = 40 // of commands, alternating between a watched and an unwatched session
)

// flipping makes a page change its colour at each press of a button or key. It also has a
// screen of text, as most pages have. With animated, a square moves meanwhile.
const flipping = `(() => {
	document.body.innerHTML = "<p>" + "The quick brown fox jumps over the lazy dog. ".repeat(120);
	let dark = false;
	const flip = () => { dark = !dark; document.documentElement.style.background = dark ? "black" : "white"; };
	for (const type of ["mousedown", "keydown"]) addEventListener(type, flip);
	document.documentElement.style.background = "white";
	document.body.style.background = "transparent";
	if (%v) {
		const square = document.createElement("div");
		square.style = "position:fixed;top:500px;left:0;width:60px;height:60px;background:red";
		document.body.append(square);
		const move = (at) => { square.style.left = at / 5 %% 600 + "px"; requestAnimationFrame(move); };
		requestAnimationFrame(move);
	}
	return true;
})()`

// observed makes the live view's page resolve window.seen with the milliseconds from the
// next input until a picture with another colour at its lower right corner is painted.
const observed = `(() => {
	const corner = (paper) => paper.getImageData(paper.canvas.width - 5, paper.canvas.height - 5, 1, 1).data[0] > 128;
	if (!window.reset) {
		const draw = CanvasRenderingContext2D.prototype.drawImage;
		CanvasRenderingContext2D.prototype.drawImage = function (...image) {
			draw.apply(this, image);
			window.drawn?.(this);
		};
		window.reset = () => {
			let start;
			const began = (e) => { start ??= e.timeStamp; };
			for (const type of ["pointerdown", "keydown"]) addEventListener(type, began, { capture: true, once: true });
			const was = corner(document.getElementById("picture").getContext("2d"));
			window.seen = new Promise((resolve) => {
				window.drawn = (paper) => {
					if (start === undefined || corner(paper) === was) return;
					window.drawn = undefined;
					requestAnimationFrame(() => { // the frame with this picture is painted before the message arrives
						const { port1, port2 } = new MessageChannel();
						port1.onmessage = () => resolve(performance.now() - start);
						port2.postMessage(0);
					});
				};
			});
		};
	}
	window.reset();
	return true;
})()`

// pictured is true in the live view's page when it shows a picture.
const pictured = `document.getElementById("picture")?.width > 600`

// viewSurvey measures the live view in a real browser.
func viewSurvey(ctx context.Context, b *bench) error {
	flags, err := chromeFlags(b.ours.chromes().mains()[0]) // of a spare; later ones may be of a shell
	if err != nil {
		return err
	}
	delay := section{
		title: "Live view",
		text: `A Chrome with the default window of the live view shows a session's page. Each time runs from an input event in that Chrome until
it has painted a picture that shows the input's effect. The page has a screen of text and changes its colour. The slow connection is
toxiproxy with 2 Mbit/s and 75 ms in each direction, and a square moves on the page, so pictures never pause. Pictures are small
while a person gives input; after a pause of 1.5 s they are sharp, and an input first makes them small again.`,
		head: []string{"engine", "input", "connection", "to the painted picture, ms"},
	}
	for _, engine := range []string{"chrome", "shell"} {
		for _, slow := range []bool{false, true} {
			clicks, keys, paused, err := b.inputDelay(ctx, flags, engine, slow)
			if err != nil {
				return fmt.Errorf("%s: %w", engine, err)
			}
			connection := "loopback"
			if slow {
				connection = "slow"
				b.worst("view/slow", keys)
			} else {
				b.worst("view/"+engine, clicks)
				b.worst("view/"+engine, keys)
			}
			for _, row := range []struct {
				input string
				times []float64
			}{{"click", clicks}, {"key", keys}, {"click after a pause", paused}} {
				delay.rows = append(delay.rows, []string{engine, row.input, connection, spread(row.times).String()})
			}
		}
	}
	cost := section{
		title: "Cost of a viewer",
		text: `A session is watched, and another one is not. Neither page changes. Processor time is that of the daemon and of all its Chromes. Commands are
as in "CDP through the multiplexer", in blocks that alternate between the two sessions; in the second half, the viewer watches the other one.`,
		head: []string{"engine", "still page, % of a core", "the same unwatched", "command, unwatched, ms", "watched, ms", "extra, µs"},
	}
	for _, engine := range []string{"chrome", "shell"} {
		row, err := b.viewCost(ctx, flags, engine)
		if err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		cost.rows = append(cost.rows, row)
	}
	b.surveyed = append(b.surveyed, delay, cost)
	return nil
}

// worst sets a figure, unless an earlier measurement of it had a higher median.
func (b *bench) worst(figure string, measured []float64) {
	q := spread(measured)
	if before, found := b.figures[figure]; !found || q.median > before.median {
		b.figures[figure] = q
	}
}

// viewedSession creates a session of an engine whose page flips its colour.
func (b *bench) viewedSession(ctx context.Context, engine string, animated bool) (*session, error) {
	s, err := b.ours.create(ctx, obj{"engine": engine, "viewport": obj{"width": 1280, "height": 800}})
	if err != nil {
		return nil, err
	}
	if err := s.show(ctx, b.site.URL+"/", `document.readyState === "complete"`); err != nil {
		return s, err
	}
	return s, s.run(ctx, fmt.Sprintf(flipping, animated))
}

// viewer starts a Chrome for the viewer of live views.
func (b *bench) viewer(ctx context.Context, flags []string) (t *tab, end func() error, err error) {
	started, err := b.direct(ctx, flags)
	if err != nil {
		return nil, nil, err
	}
	if t, err = front(ctx, started.endpoint); err != nil {
		return nil, nil, errors.Join(err, started.end())
	}
	err = t.Call(ctx, t.session, "Emulation.setDeviceMetricsOverride", obj{"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	return t, func() error { t.Close(); return started.end() }, err
}

// inputDelay returns the delays of inputs in the live view, in milliseconds: of clicks and
// keys that follow each other, and of clicks after a pause.
func (b *bench) inputDelay(ctx context.Context, flags []string, engine string, slow bool) (clicks, keys, paused []float64, err error) {
	s, err := b.viewedSession(ctx, engine, slow)
	if s != nil {
		defer func() { err = errors.Join(err, discard(context.WithoutCancel(ctx), s)) }()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	url, times := s.Control, viewInputs
	if slow {
		proxied, end, failed := slowed(ctx, url)
		if failed != nil {
			return nil, nil, nil, failed
		}
		defer func() { err = errors.Join(err, end()) }()
		url, times = proxied, viewSlowInputs
	}
	t, end, err := b.viewer(ctx, flags)
	if end != nil {
		defer func() { err = errors.Join(err, end()) }()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if err := t.visit(ctx, url, pictured); err != nil {
		return nil, nil, nil, err
	}
	click := func(event string) error {
		return t.Call(ctx, t.session, "Input.dispatchMouseEvent", obj{"type": event, "x": 640, "y": 500, "button": "left", "clickCount": 1}, nil)
	}
	key := func(event string) error {
		return t.Call(ctx, t.session, "Input.dispatchKeyEvent", obj{"type": event, "key": "a", "code": "KeyA", "text": "a", "windowsVirtualKeyCode": 65}, nil)
	}
	for i := range times + 2 { // the first two are a warm-up
		for _, in := range []struct {
			do       func(string) error
			down, up string
			delays   *[]float64
		}{{click, "mousePressed", "mouseReleased", &clicks}, {key, "keyDown", "keyUp", &keys}} {
			ms, err := t.seen(ctx, func() error { return errors.Join(in.do(in.down), in.do(in.up)) })
			if err != nil {
				return nil, nil, nil, err
			}
			if i >= 2 {
				*in.delays = append(*in.delays, ms)
			}
		}
	}
	for range times / 3 {
		select {
		case <-time.After(viewPause):
		case <-ctx.Done():
			return nil, nil, nil, ctx.Err()
		}
		ms, err := t.seen(ctx, func() error { return errors.Join(click("mousePressed"), click("mouseReleased")) })
		if err != nil {
			return nil, nil, nil, err
		}
		paused = append(paused, ms)
	}
	return clicks, keys, paused, nil
}

// seen gives an input and waits until its effect is painted.
func (t *tab) seen(ctx context.Context, input func() error) (ms float64, err error) {
	var ready bool
	if err := t.evaluate(ctx, observed, &ready); err != nil {
		return 0, err
	}
	if err := input(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, pageDeadline)
	defer cancel()
	err = t.evaluate(ctx, "window.seen", &ms)
	return ms, err
}

// viewCost measures what a viewer costs while the page is still.
func (b *bench) viewCost(ctx context.Context, flags []string, engine string) (row []string, err error) {
	var sessions [2]*session
	var sides [2]*tab
	for i := range sessions {
		s, err := b.viewedSession(ctx, engine, false)
		if s != nil {
			defer func() { err = errors.Join(err, discard(context.WithoutCancel(ctx), s)) }()
		}
		if err != nil {
			return nil, err
		}
		sessions[i] = s
		if sides[i], err = s.front(ctx); err != nil {
			return nil, err
		}
		defer sides[i].Close()
	}
	t, end, err := b.viewer(ctx, flags)
	if end != nil {
		defer func() { err = errors.Join(err, end()) }()
	}
	if err != nil {
		return nil, err
	}
	unwatchedShare, err := b.share(ctx)
	if err != nil {
		return nil, err
	}
	var watched, unwatched []float64
	share := 0.0
	for i, s := range sessions {
		if err := t.visit(ctx, s.Control, pictured); err != nil {
			return nil, err
		}
		if i == 0 {
			if share, err = b.share(ctx); err != nil {
				return nil, err
			}
		}
		both, err := alternate(ctx, viewBlocks/2, cdpCommands, sides[:], func(t *tab) error { return oneCommand(ctx, t) })
		if err != nil {
			return nil, err
		}
		watched = append(watched, both[i]...)
		unwatched = append(unwatched, both[1-i]...)
	}
	extra := make([]float64, len(watched))
	for i := range extra {
		extra[i] = (watched[i] - unwatched[i]) * 1000
	}
	b.worst("view/still", []float64{share - unwatchedShare})
	b.worst("view/extra", extra)
	return []string{engine, number(share), number(unwatchedShare), spread(unwatched).String(), spread(watched).String(), spread(extra).String()}, nil
}

// share returns the share of a core that the daemon and its Chromes use, in percent.
func (b *bench) share(ctx context.Context) (float64, error) {
	if err := settle(ctx); err != nil {
		return 0, err
	}
	before := below(b.ours.PID(), true).ticks()
	select {
	case <-time.After(viewStill):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return float64(below(b.ours.PID(), true).ticks()-before) / viewStill.Seconds(), nil
}
