package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/e2e/nodes"
)

// upgrade is a run in which all nodes are replaced under load, one after the other.
type upgrade struct {
	*run
	clients *clients
	stayers []*stayer
	passers []*passer
}

// upgraded is what the upgrades of a run have found.
type upgraded struct {
	settings        settings
	upgrades        int
	stops, starts   []time.Duration // from SIGTERM until the process has ended; from its start until it is ready
	calls, commands int
	restarted       int
	stayed, passed  int // sessions that lived during whole upgrades, and others
	moves           int // of sessions between nodes
	counts          counts
	failed          []string // calls, commands and connections
	gone            []string // sessions
	found           []string // what else is wrong, a line for each
	took            time.Duration
}

// rolls upgrades all nodes s.upgrades times.
func rolls(ctx context.Context, s settings) (rep *upgraded, err error) {
	r, stop, err := newRun(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if r.contest, err = newContest(ctx, r); err != nil {
		return nil, err
	}
	u := &upgrade{run: r, clients: &clients{run: r}}
	for i := range keepersOfRun {
		id := fmt.Sprint("kept-", i)
		r.kept = append(r.kept, id)
		u.stayers = append(u.stayers, &stayer{guest: &guest{clients: u.clients, id: id}})
	}
	for i := range shortsOfRun {
		u.passers = append(u.passers, &passer{short: &short{run: r, number: i}, clients: u.clients})
	}
	began := time.Now()
	rep = &upgraded{settings: s}
	err = u.load(ctx, rep)
	rep.took = time.Since(began)
	return rep, err
}

// load runs the load, and upgrades meanwhile.
func (u *upgrade) load(ctx context.Context, rep *upgraded) error {
	loaded, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for _, s := range u.stayers {
		work.Go(func() {
			u.use(loaded, keeperPause, s.step)
			s.close()
		})
	}
	for _, p := range u.passers {
		work.Go(func() { u.use(loaded, shortPause, p.step) })
	}
	for i := range u.Nodes {
		work.Go(func() {
			u.use(loaded, contestPause, func(ctx context.Context) { u.contest.step(ctx, i, u.clients.call) })
		})
	}
	binaries := []string{u.settings.next, u.settings.binary}
	for i := range u.settings.upgrades {
		if err := u.roll(ctx, binaries[i%2], rep); err != nil {
			return err
		}
		err := u.examineUpgrade(ctx, rep)
		rep.upgrades++
		progress("upgrade %d of %d: %s", i+1, u.settings.upgrades, rep)
		if err != nil {
			return err
		}
	}
	return nil
}

// roll stops each node as an operator does, and starts it with another binary.
func (u *upgrade) roll(ctx context.Context, binary string, rep *upgraded) error {
	for _, n := range u.Nodes {
		if err := sleep(ctx, underLoad); err != nil {
			return err
		}
		began := time.Now()
		if err := n.Stop(); err != nil {
			rep.found = append(rep.found, err.Error())
		}
		stopped := time.Now()
		n.Upgrade(binary)
		if err := n.Start(ctx); err != nil {
			return err
		}
		rep.stops, rep.starts = append(rep.stops, stopped.Sub(began)), append(rep.starts, time.Since(stopped))
		progress("node %s was upgraded: it stopped in %.1f s and was ready after another %.1f s", n.ID, stopped.Sub(began).Seconds(), time.Since(stopped).Seconds())
	}
	return sleep(ctx, underLoad)
}

// examineUpgrade looks at everything after an upgrade, without load.
func (u *upgrade) examineUpgrade(ctx context.Context, rep *upgraded) error {
	u.gate.Lock()
	defer u.gate.Unlock()
	for _, s := range u.stayers {
		within, cancel := context.WithTimeout(ctx, saveDeadline)
		if err := s.alive(within); err != nil {
			rep.gone = append(rep.gone, err.Error())
			progress("lost: %v", err)
		}
		cancel()
	}
	rep.stayed += len(u.stayers)
	one := &round{}
	err := u.examine(ctx, one)
	rep.counts.add(one.counts)
	rep.found = append(rep.found, one.found...)
	for _, f := range one.found {
		progress("%s", f)
	}
	rep.passed = 0
	for _, p := range u.passers {
		rep.passed += p.lived
	}
	rows, more := u.watch.query(ctx, "SELECT count(*) FROM runs WHERE cause = 'moved'")
	if more == nil && len(rows) == 1 {
		_, more = fmt.Sscan(rows[0][0], &rep.moves)
	}
	u.clients.mu.Lock()
	defer u.clients.mu.Unlock()
	rep.calls, rep.commands, rep.restarted = u.clients.calls, u.clients.commands, u.clients.restarted
	rep.failed = slices.Clone(u.clients.failed)
	return errors.Join(err, more, u.examineVersions(ctx, rep))
}

// examineVersions looks whether all nodes run one version.
func (u *upgrade) examineVersions(ctx context.Context, rep *upgraded) error {
	var list struct {
		Nodes []struct {
			ID      string `json:"node_id"`
			Version string
			State   string
		}
	}
	if err := u.API().Call(ctx, http.MethodGet, "/v1/nodes", nil, &list); err != nil {
		return err
	}
	for _, n := range list.Nodes {
		if n.Version != list.Nodes[0].Version || n.State != list.Nodes[0].State {
			rep.found = append(rep.found, fmt.Sprintf("nodes differ after the upgrade: %+v", list.Nodes))
			return nil
		}
	}
	return nil
}

// String describes what was found.
func (r *upgraded) String() string {
	c := r.counts
	return fmt.Sprintf("%d sessions stayed and %d were ended with a save, %d moves, %d times closed with 1012, %d calls, %d commands, %d saves; lost sessions %d, lost saves %d, failed calls %d, two nodes %d, loser %d, left %d",
		r.stayed, r.passed, r.moves, r.restarted, r.calls, r.commands, c.saves, len(r.gone), c.lost, len(r.failed), c.double, c.loser, c.left)
}

// failedRun returns an error if anything was found.
func (r *upgraded) failedRun() error {
	if len(r.gone)+len(r.failed)+len(r.found) > 0 {
		return errors.New("the run has found faults of Stasis; they are listed above and in the page")
	}
	return nil
}

// copyLogs copies the nodes' logs to the folder of -logs.
func (s settings) copyLogs(c *nodes.Cluster) error {
	if s.logs == "" {
		return nil
	}
	errs := []error{os.MkdirAll(s.logs, 0o755)}
	for _, n := range c.Nodes {
		errs = append(errs, n.CopyLog(filepath.Join(s.logs, n.ID+".log")))
	}
	return errors.Join(errs...)
}
