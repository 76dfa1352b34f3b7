package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/e2e/nodes"
	"github.com/stasisd/stasis/e2e/rig"
)

// fault is one way in which a part of the cluster fails. do returns after the part works again.
type fault struct {
	name  string
	whole bool // it is not of one node
	do    func(ctx context.Context, r *run, victim *nodes.Node) error
}

// faults are all of them.
var faults = []fault{
	{"kill", false, func(ctx context.Context, r *run, n *nodes.Node) error {
		err := errors.Join(n.Kill(), sleep(ctx, r.settings.fault))
		return errors.Join(err, n.Start(context.WithoutCancel(ctx)))
	}},
	{"stop", false, func(ctx context.Context, r *run, n *nodes.Node) error {
		return errors.Join(n.Pause(), sleep(ctx, r.settings.fault), n.Continue())
	}},
	{"cut from PostgreSQL", false, func(ctx context.Context, r *run, n *nodes.Node) error {
		return errors.Join(n.CutDatabase(ctx), sleep(ctx, r.settings.fault), n.Heal(context.WithoutCancel(ctx)))
	}},
	{"cut from S3", false, func(ctx context.Context, r *run, n *nodes.Node) error {
		return errors.Join(n.CutStore(ctx), sleep(ctx, r.settings.fault), n.Heal(context.WithoutCancel(ctx)))
	}},
	{"cut from the other nodes", false, func(ctx context.Context, r *run, n *nodes.Node) error {
		return errors.Join(r.cutNodes(ctx, n), n.Heal(context.WithoutCancel(ctx)))
	}},
	{"restart of PostgreSQL", true, func(ctx context.Context, r *run, _ *nodes.Node) error {
		r.Server.Kill()
		return errors.Join(sleep(ctx, r.settings.restart), r.Server.Restart())
	}},
}

// cutDeadline is how long a call to a node that is cut from the others may wait for an answer.
const cutDeadline = 30 * time.Second

// cutNodes cuts a node from the others. Meanwhile it is called about the sessions of other nodes:
// every call must be answered soon, also those that would use connections from before the cut.
func (r *run) cutNodes(ctx context.Context, n *nodes.Node) error {
	on, err := r.watch.livesOn(ctx, n.ID)
	if err != nil {
		return err
	}
	ask := func(k *keeper) error {
		within, cancel := context.WithTimeout(ctx, cutDeadline)
		defer cancel()
		err := n.Call(within, http.MethodGet, "/v1/sessions/"+k.id, nil, nil)
		var refused *rig.Refused
		if errors.As(err, &refused) {
			return nil
		}
		return err
	}
	for _, k := range r.keepers {
		if err := ask(k); err != nil {
			return err
		}
	}
	if err := n.CutNodes(ctx, r.Nodes); err != nil {
		return err
	}
	var calls sync.WaitGroup
	for _, k := range r.keepers {
		if on[k.id] {
			continue
		}
		calls.Go(func() {
			if err := ask(k); err != nil && ctx.Err() == nil {
				r.hung(fmt.Sprintf("node %s, cut from the others, has not answered a call about %s: %v", n.ID, k.id, err))
			}
		})
	}
	err = sleep(ctx, r.settings.fault)
	calls.Wait()
	return err
}

// hung notes a call that was not answered in time.
func (r *run) hung(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = append(r.unanswered, what)
}

// plan returns the faults of all rounds: each kind as often as the others, in random order.
func (s settings) plan(random *rand.Rand) ([]fault, error) {
	kinds := faults
	if s.kinds != "" {
		kinds = nil
		for name := range strings.SplitSeq(s.kinds, ",") {
			i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
			if i < 0 {
				return nil, fmt.Errorf("-kinds: there is no fault %q", name)
			}
			kinds = append(kinds, faults[i])
		}
	}
	var plan []fault
	for len(plan) < s.rounds {
		turn := slices.Clone(kinds)
		random.Shuffle(len(turn), func(i, j int) { turn[i], turn[j] = turn[j], turn[i] })
		plan = append(plan, turn...)
	}
	return plan[:s.rounds], nil
}
