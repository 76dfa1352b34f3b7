package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// cluster is the server and the nodes of a run.
type cluster struct {
	server   *postgrestest.Server
	observer *observer
	shared   *shared
	nodes    []*node
}

// besidesPool is how many connections a node has besides its pool: for the lock and for the
// lease.
const besidesPool = 2

// startCluster starts the server, and then the nodes.
func startCluster(ctx context.Context, s settings, folder string) (_ *cluster, err error) {
	c := &cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close(context.WithoutCancel(ctx)))
		}
	}()
	settings := []string{fmt.Sprintf("max_connections=%d", s.nodes*(s.pool+besidesPool)+20)}
	if s.durable {
		settings = append(settings, "fsync=on", "full_page_writes=on", "autovacuum=on", "shared_buffers=1GB", "max_wal_size=4GB")
	}
	if s.statements {
		settings = append(settings, "shared_preload_libraries=pg_stat_statements", "pg_stat_statements.max=1000")
	}
	if c.server, err = postgrestest.Start(settings...); err != nil {
		return nil, err
	}
	if c.observer, err = observe(ctx, c.server.URL("postgres")); err != nil {
		return nil, err
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	store := memstore.New(0, time.Now)
	c.shared = &shared{database: c.server.URL("postgres") + "&pool_max_conns=" + strconv.Itoa(s.pool), store: store, keys: snapshot.NewKeys(identity, [32]byte{1}), folder: folder,
		sessions: 4*s.sessions/s.nodes + 20, renewals: &timings{}, began: time.Now(), transactions: &transactions{},
		level: &slog.LevelVar{}}
	c.shared.level.Set(slog.LevelError)
	c.shared.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: c.shared.level}))
	first, err := startNode(ctx, c.shared, 0) // makes the tables and the key
	if err != nil {
		return nil, err
	}
	c.nodes = []*node{first}
	return c, c.join(ctx, s.nodes-1)
}

// join starts further nodes, some at once.
func (c *cluster) join(ctx context.Context, n int) error {
	made, errs := make([]*node, n), make([]error, n)
	each(n, func(i int) { made[i], errs[i] = startNode(ctx, c.shared, i+1) })
	for _, n := range made {
		if n != nil {
			c.nodes = append(c.nodes, n)
		}
	}
	return errors.Join(errs...)
}

// each calls do for 0 to n-1, some at once, and waits.
func each(n int, do func(i int)) {
	var workers sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range 2 * runtime.NumCPU() {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	workers.Wait()
}

// fewSessions is how many sessions are ended at the end of a run, as they are when a daemon stops.
// More would take minutes.
const fewSessions = 1000

// end closes the cluster. If many sessions live, it only ends the server: then the process ends.
func (c *cluster) end(ctx context.Context, sessions int) error {
	c.shared.level.Set(slog.LevelError + 1) // nodes report what their end interrupts
	if sessions <= fewSessions {
		return c.close(ctx)
	}
	return errors.Join(c.observer.close(ctx), c.server.Stop())
}

// close ends the nodes, and then the server.
func (c *cluster) close(ctx context.Context) error {
	errs := make([]error, len(c.nodes))
	each(len(c.nodes), func(i int) { errs[i] = c.nodes[i].close(ctx) })
	if c.observer != nil {
		errs = append(errs, c.observer.close(ctx))
	}
	if c.server != nil {
		errs = append(errs, c.server.Stop())
	}
	return errors.Join(errs...)
}
