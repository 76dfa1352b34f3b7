//go:build linux

package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/session/placement"
)

// deletedKeysEvery is how often a node looks for keys that other nodes have deleted.
const deletedKeysEvery = 5 * time.Second

// shared is what sessions need to work beside those of other nodes. It is empty for a daemon
// that is no node.
type shared struct {
	claims    *claims.Claims
	ticketKey []byte
	peers     *placement.Peers
	line      *placement.Line
}

// share makes sessions, tickets, deletions of keys and the order of waiting creates hold on all
// nodes, if this daemon is one and has joined as nodeID.
func (d *daemon) share(ctx context.Context, nodeID string, log *slog.Logger) shared {
	if !d.node {
		return shared{}
	}
	d.apiKeys.UseTicketStore(d.catalogue.Claims)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() {
		next := time.NewTicker(deletedKeysEvery)
		defer next.Stop()
		for {
			select {
			case <-next.C:
				d.apiKeys.EndDeleted(watching)
			case <-watching.Done():
				return
			}
		}
	})
	d.closers = append(d.closers, func() error {
		stop()
		watch.Wait()
		return nil
	})
	peers := placement.NewPeers(nodeID, d.catalogue.Nodes, time.Now)
	return shared{claims.New(d.claims, 0, log), d.keys.Derive("session tickets"), peers, placement.NewLine(peers, d.claims, 0, log)}
}

// fingerprints returns those of the secrets that nodes share, for the facts of this node.
// webhook is the secret that signs webhooks; nil: none.
func (s *storage) fingerprints(webhook []byte) claims.Fingerprints {
	return claims.Of(claims.Secrets{Identities: s.keys.IdentityRecipients(), Archive: s.keys.Derive("node fingerprints"), Webhook: webhook})
}
