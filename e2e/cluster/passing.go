package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/stasisd/stasis/e2e/rig"
)

// passer makes one session after the other, as [short] does. Everything must succeed at the first
// try.
type passer struct {
	*short
	clients *clients
	lived   int // sessions that it has ended with a save
}

// step makes a session and ends it.
func (p *passer) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*saveDeadline)
	defer cancel()
	p.made++
	g := &guest{clients: p.clients, id: fmt.Sprintf("short-%d-%d", p.number, p.made)}
	defer g.close()
	p.open, p.asked = g.id, 1
	if g.open(ctx, p.body(g.id)) != nil {
		return
	}
	visited := false
	looked := false
	err := g.do(ctx, func(ctx context.Context, conn *rig.Conn, page string) error {
		if !looked {
			if err := p.restored(ctx, conn, g.id); err != nil {
				return err
			}
			looked = true
		}
		err := p.visit(ctx, conn, page, g.id)
		visited = err == nil
		return err
	})
	if err != nil || !visited {
		return // it was counted
	}
	p.end(ctx)
}

// end ends the session with a save.
func (p *passer) end(ctx context.Context) {
	mode := "filesystem"
	if !p.large() {
		mode += "&save_as_default=true"
	}
	var answer ending
	err := p.clients.call(ctx, http.MethodDelete, "/v1/sessions/"+p.open+"?save_snapshot_mode="+mode, nil, &answer)
	var refused *rig.Refused
	conflict := errors.As(err, &refused) && refused.Code == "version_conflict"
	if conflict {
		err = json.Unmarshal([]byte(refused.Body), &answer) // it has saved
	}
	switch {
	case err != nil:
		return // it was counted
	case answer.Snapshot == nil || answer.Snapshot.Rescue:
		p.clients.fail("the end of %s is answered without its save: %+v", p.open, answer)
	default:
		p.lived++
		p.confirmed(answer, conflict)
	}
}
