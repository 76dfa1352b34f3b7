package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
	"github.com/stasisd/stasis/freeport"
	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// costFile is the page that [bench.runHop] and [bench.runStarts] write.
const costFile = "cluster-cost.md"

const costPreface = `# What nodes cost

Several daemons can be [one service](cluster.md). Two commands write this page. ` + "`make bench-hop`" + ` compares commands through the
node of their session and through another one. ` + "`make bench-start`" + ` compares a daemon that is no node with one from before there
were nodes. Ratios and differences differ less between machines than times do.
`

// hopTitle is the heading of the page's section about calls through another node.
const hopTitle = "Through the session's node and through another one"

// mostForHop is how many milliseconds longer a command may take through another node.
const mostForHop = 1.0

// hopScreenshots is how many screenshots are taken on each side.
const hopScreenshots = 100

// pair is two nodes of a cluster on this machine.
type pair struct {
	server *postgrestest.Server
	store  *s3test.Server
	nodes  [2]*rig.Daemon
}

// startPair starts two nodes with real PostgreSQL and a real S3 server.
func (b *bench) startPair(ctx context.Context) (_ *pair, err error) {
	p := &pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	if p.server, err = postgrestest.Start(); err != nil {
		return nil, err
	}
	if err := p.server.Exec(ctx, "postgres", "CREATE DATABASE stasis"); err != nil {
		return nil, err
	}
	objects := filepath.Join(b.scratch, "objects")
	if err := os.Mkdir(objects, 0o700); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	if p.store, err = s3test.Run(ctx, addresses[2], objects); err != nil {
		return nil, err
	}
	for i := range p.nodes {
		b.hosts++
		at := addresses[i]
		d := &rig.Daemon{
			Binary: b.binary, Dir: filepath.Join(b.scratch, fmt.Sprint("d", b.hosts)), UIDs: firstUID + 1000*b.hosts, Listen: at,
			Env:  []string{"STASIS_DATABASE=" + p.server.URL("stasis"), "STASIS_STORE=" + p.store.URL("stasis"), "AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey},
			Args: []string{"--chrome", b.chrome, "--shell", b.shell, "--node-url", "http://" + at, "--node-id", fmt.Sprint("node-", i), "--shutdown-notice", "0s", "--spares", "0", "--shell-spares", "0", "--standby", "0"},
		}
		if i > 0 {
			if err := errors.Join(os.Mkdir(d.Dir, 0o711), rig.CopyKeys(p.nodes[0].Dir, d.Dir)); err != nil {
				return nil, err
			}
		}
		p.nodes[i] = d
		if err := d.Start(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pair) stop() (err error) {
	for _, n := range p.nodes {
		if n != nil {
			err = errors.Join(err, n.Stop(os.Interrupt))
		}
	}
	if p.store != nil {
		p.store.Stop()
	}
	if p.server != nil {
		err = errors.Join(err, p.server.Stop())
	}
	return err
}

// freeAddresses returns addresses of 127.0.0.1 that nothing listens on.
func freeAddresses(n int) (all []string, err error) {
	for range n {
		at, err := freeport.Address()
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// hopRun compares the two ways to sessions.
type hopRun struct {
	*bench
	*pair
	order *rand.Rand
	rows  [][]string
}

// runHop times commands of one session that go through its own node, and through another one. The
// two take turns, in a random order, so that other load on the machine affects both alike.
func (b *bench) runHop(ctx context.Context) (err error) {
	p, err := b.startPair(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	h := &hopRun{bench: b, pair: p, order: rand.New(rand.NewPCG(b.seed, 0))}
	if err := p.nodes[0].Call(ctx, http.MethodPost, "/v1/nodes/node-1/drain", nil, nil); err != nil { // so that sessions begin on the first
		return err
	}
	for _, engine := range []string{chrome, shell} {
		if err := h.engine(ctx, engine); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	s := section{
		title: hopTitle,
		text: fmt.Sprintf("`make bench-hop` on %s: two nodes, PostgreSQL and an S3 server on one machine. Two plain clients are connected to the\n"+
			"same page, one through the node on which its session lives, and one through the other node. They send one command after the\n"+
			"other, in turn, in a random order. Milliseconds: the median, with the middle half in brackets. The difference is that of the\n"+
			"medians. Its interval holds 95 %% of %d samples of the same size, drawn again from these times (the bootstrap). A hop between\n"+
			"machines takes the network's time in addition, and encryption if the nodes have `https://` URLs. %s",
			time.Now().UTC().Format(time.DateOnly), bootstraps, machineLine(h.machine)),
		head: []string{"", "count", "its own node", "another node", "longer, ms", "95 %", "at most"},
		rows: h.rows,
	}
	return b.writeCost(s)
}

// writeCost prints a section, and writes it to the page.
func (b *bench) writeCost(s section) error {
	fmt.Print(s.markdown())
	path := filepath.Join(b.folder, costFile)
	return errors.Join(replaceSection(path, s), beginPage(path, costPreface))
}

// engine makes a session of an engine on the first node, and times what goes through both.
func (h *hopRun) engine(ctx context.Context, engine string) (err error) {
	s, err := h.nodes[0].Create(ctx, obj{"engine": engine})
	if err != nil {
		return err
	}
	defer func() {
		_, ended := h.nodes[0].End(context.WithoutCancel(ctx), s.ID, "none")
		err = errors.Join(err, ended)
	}()
	var tabs [2]*tab
	for i, n := range h.nodes {
		at, err := url.Parse(s.CDP)
		if err != nil {
			return err
		}
		at.Host = n.Listen
		if tabs[i], err = front(ctx, at.String()); err != nil {
			return err
		}
		defer tabs[i].Close()
	}
	if err := h.onFirst(ctx, s.ID); err != nil {
		return err
	}
	if err := tabs[0].visit(ctx, h.site.URL+"/", `document.readyState === "complete"`); err != nil {
		return err
	}
	return errors.Join(
		h.compare(ctx, "a command and its answer, "+engine, h.rounds, true, func(ctx context.Context, i int) error { return oneCommand(ctx, tabs[i]) }),
		h.compare(ctx, "a screenshot, "+engine, min(hopScreenshots, h.rounds), false, func(ctx context.Context, i int) error {
			return tabs[i].Call(ctx, tabs[i].session, "Page.captureScreenshot", nil, nil)
		}),
		h.compare(ctx, "GET of the session, "+engine, h.rounds, false, func(ctx context.Context, i int) error {
			return h.nodes[i].Call(ctx, http.MethodGet, "/v1/sessions/"+s.ID, nil, nil)
		}))
}

// onFirst returns an error unless the session lives on the first node.
func (h *hopRun) onFirst(ctx context.Context, id string) error {
	var list struct {
		Nodes []struct {
			ID   string `json:"node_id"`
			Self bool
			Live int
		}
	}
	return poll(ctx, pageDeadline, func() (bool, error) {
		if err := h.nodes[1].Call(ctx, http.MethodGet, "/v1/nodes", nil, &list); err != nil {
			return false, err
		}
		live := map[string]int{}
		for _, n := range list.Nodes {
			live[n.ID] = n.Live
		}
		if live["node-1"] > 0 {
			return false, fmt.Errorf("session %s lives on the second node", id)
		}
		return live["node-0"] > 0, nil
	})
}

// compare times something on both nodes count times, in turn, and adds a row. limited says that
// it may take at most mostForHop longer.
func (h *hopRun) compare(ctx context.Context, title string, count int, limited bool, do func(ctx context.Context, node int) error) error {
	progress("%s", title)
	var pairs [][2]float64 // another node, its own node
	warm := count/10 + 1
	for n := range count + warm {
		var got [2]float64
		for _, i := range h.order.Perm(2) {
			ms, err := timed(func() error { return do(ctx, i) })
			if err != nil {
				return err
			}
			got[1-i] = ms
		}
		if n >= warm {
			pairs = append(pairs, got)
		}
	}
	h.rows = append(h.rows, differenceRow(title, pairs, limited, rand.New(rand.NewPCG(h.seed, 1))))
	return nil
}

// differenceRow is the row of what takes longer by the first time of each pair than by the second.
func differenceRow(title string, pairs [][2]float64, limited bool, random *rand.Rand) []string {
	var of, to []float64
	for _, p := range pairs {
		of, to = append(of, p[0]), append(to, p[1])
	}
	longer := spread(of).median - spread(to).median
	low, high := bootstrapOf(pairs, random, func(of, to float64) float64 { return of - to })
	verdict := ""
	switch {
	case limited && longer <= mostForHop:
		verdict = fmt.Sprintf("%.0f, met", mostForHop)
	case limited:
		verdict = fmt.Sprintf("%.0f, **missed**", mostForHop)
	}
	exact := func(n float64) string { return fmt.Sprintf("%.3f", n) }
	return []string{title, fmt.Sprint(len(pairs)), spread(to).String(), spread(of).String(), exact(longer), exact(low) + "–" + exact(high), verdict}
}
