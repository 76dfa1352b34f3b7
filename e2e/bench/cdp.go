package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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

// cdpSurvey speaks to a Chrome through the multiplexer, and to one that runs
// with the very same flags but a port of its own.
func cdpSurvey(ctx context.Context, b *bench) (err error) {
	s, err := b.ours.create(ctx, obj{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, thrown(context.WithoutCancel(ctx), s)) }()
	through, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer through.Close()
	flags, err := chromeFlags(b.ours.chromes().mains()[0])
	if err != nil {
		return err
	}
	endpoint, end, err := b.direct(ctx, flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	direct, err := front(ctx, endpoint)
	if err != nil {
		return err
	}
	defer direct.Close()
	for _, t := range []*tab{through, direct} {
		var painted bool
		if err := t.visit(ctx, b.site.URL+"/", `document.readyState === "complete"`); err != nil {
			return err
		}
		if err := t.evaluate(ctx, noise, &painted); err != nil {
			return err
		}
	}
	command := func(t *tab) error {
		return t.Call(ctx, t.session, "Runtime.evaluate", obj{"expression": "1"}, nil)
	}
	screenshot := func(t *tab) error { return t.Call(ctx, t.session, "Page.captureScreenshot", nil, nil) }
	commands, err := inTurn(ctx, cdpBlocks, cdpCommands, through, direct, command)
	if err != nil {
		return err
	}
	shots, err := inTurn(ctx, cdpShotBlocks, cdpScreenshots, through, direct, screenshot)
	if err != nil {
		return err
	}
	b.figures["cdp/extra"] = commands.extra(1000)
	b.figures["cdp/screenshots"] = ratios(shots.through, shots.direct)
	b.seen = append(b.seen, section{
		title: "CDP through the multiplexer",
		text: `Beside it a Chrome with the very same flags, but a port in place of the pipe; the same plain client speaks to both over a
WebSocket, one command after the other, in blocks that take turns. A command is a script in the page and its answer, so the
multiplexer handles two messages. Screenshots are of a page whose picture is about a megabyte.`,
		head: []string{"", "through the multiplexer, ms", "direct, ms", "more, µs", "×"},
		rows: [][]string{commands.row("a command and its answer"), shots.row("a screenshot")},
	})
	return nil
}

// turns are what one command took in each block, in milliseconds.
type turns struct{ through, direct []float64 }

// inTurn does a command so many times in each of the blocks, on each side.
func inTurn(ctx context.Context, blocks, times int, through, direct *tab, do func(*tab) error) (turns, error) {
	var all turns
	// A block before the first is thrown away.
	for block := range blocks + 1 {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		side := func(t *tab) (float64, error) {
			each := make([]float64, times)
			for i := range each {
				var err error
				if each[i], err = timed(func() error { return do(t) }); err != nil {
					return 0, err
				}
			}
			return spread(each).median, nil
		}
		ours, err := side(through)
		theirs, also := side(direct)
		if err := errors.Join(err, also); err != nil {
			return all, err
		}
		if block > 0 {
			all.through, all.direct = append(all.through, ours), append(all.direct, theirs)
		}
	}
	return all, nil
}

// extra is how much more it took through the multiplexer, in a unit of which
// there are so many in a millisecond.
func (t turns) extra(unit float64) quartiles {
	each := make([]float64, len(t.through))
	for i := range each {
		each[i] = (t.through[i] - t.direct[i]) * unit
	}
	return spread(each)
}

func (t turns) row(title string) []string {
	return []string{title, spread(t.through).String(), spread(t.direct).String(), t.extra(1000).String(), ratios(t.through, t.direct).String()}
}

// chromeFlags are the flags that a Chrome was started with.
func chromeFlags(pid int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")[1:], nil
}

// direct starts a Chrome with flags, but a port of its own, and gives its CDP
// address and what ends it.
func (b *bench) direct(ctx context.Context, flags []string) (endpoint string, end func() error, err error) {
	dir := filepath.Join(b.scratch, "direct")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	args := []string{"--remote-debugging-port=0", "--user-data-dir=" + dir}
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if name != "--remote-debugging-pipe" && name != "--user-data-dir" && name != "--disk-cache-dir" {
			args = append(args, flag)
		}
	}
	cmd := exec.CommandContext(ctx, b.chrome, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if os.Getuid() == 0 { // its sandbox does not run for root
		const user = firstUID - 1
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		if err := os.Chown(dir, user, user); err != nil {
			return "", nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() error { return killed(cmd) }
	deadline := time.Now().Add(pageDeadline)
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if port, path, found := strings.Cut(string(raw), "\n"); err == nil && found && path != "" {
			return fmt.Sprintf("ws://127.0.0.1:%s%s", port, path), end, nil
		}
		if err := ctx.Err(); err != nil || time.Now().After(deadline) {
			return "", nil, errors.Join(errors.New("a Chrome with a port does not come up"), err, end())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
