package placement_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/placement"
)

// catalogue is a placement.Catalogue in memory.
type catalogue struct {
	nodes  []profiles.Node
	places map[string]placement.Place
	err    error
	reads  int
	during func() // called while the nodes are read; nil: nothing is
}

func (c *catalogue) Nodes(context.Context) ([]profiles.Node, error) {
	c.reads++
	if c.during != nil {
		c.during()
	}
	return c.nodes, c.err
}

func (c *catalogue) NodeOf(_ context.Context, id string) (placement.Place, error) {
	c.reads++
	p, ok := c.places[id]
	if !ok {
		return p, fault.New(fault.SessionNotFound, "test", "")
	}
	return p, c.err
}

// node returns a node with a lease.
func node(id string, s placement.Status, change ...func(*profiles.Node, *placement.Facts)) profiles.Node {
	n := profiles.Node{ID: id, Number: 1, URL: "http://" + id, Left: 10 * time.Second}
	f := placement.Facts{Engines: map[string]string{"chrome": "150.0.1.1", "shell": "150.0.1.1"}, Sessions: 4}
	for _, c := range change {
		c(&n, &f)
	}
	n.Facts, n.Status = profiles.JSON(f), profiles.JSON(s)
	return n
}

func TestOrder(t *testing.T) {
	spare := map[string]int{"shell": 1}
	c := &catalogue{nodes: []profiles.Node{
		node("draining", placement.Status{Free: 9}, func(n *profiles.Node, _ *placement.Facts) { n.Draining = true }),
		node("full", placement.Status{}),
		node("full2", placement.Status{}),
		node("holder", placement.Status{}),
		node("late", placement.Status{Free: 9}, func(n *profiles.Node, _ *placement.Facts) { n.Left = 0 }),
		node("much", placement.Status{Free: 4}),
		node("old", placement.Status{Free: 9}, func(_ *profiles.Node, f *placement.Facts) { f.Engines["shell"] = "149.9.9.9" }),
		node("parked", placement.Status{Free: 1, Parked: []string{"snap"}}),
		node("self", placement.Status{Free: 1, Spares: spare}),
		node("standby", placement.Status{Free: 1, Standbys: []string{"snap"}}),
		node("stopped", placement.Status{Free: 9}, func(n *profiles.Node, _ *placement.Facts) { n.Number = 0 }),
		node("without", placement.Status{Free: 9}, func(_ *profiles.Node, f *placement.Facts) { delete(f.Engines, "shell") }),
		node("writer", placement.Status{Free: 9}, func(_ *profiles.Node, f *placement.Facts) { f.WriteOnly = true }),
	}}
	p := placement.NewPeers("self", c, time.Now)
	check(t, p, placement.Wanted{Engine: "shell", SnapshotID: "snap", Chrome: "150.0.1.1", Holder: "holder"},
		"holder", "parked", "standby", "self", "much", "full", "full2")
	check(t, p, placement.Wanted{Engine: "shell"}, "self", "old", "writer", "much", "parked", "standby", "full", "full2", "holder")

	for range 4 { // the status of much does not have them yet
		p.Placed("much")
	}
	got := order(t, p, placement.Wanted{Engine: "shell"})
	if slices.Index(got, "much") < slices.Index(got, "standby") {
		t.Errorf("a node that was given four sessions is still before those with a place: %v", got)
	}
}

func order(t *testing.T, p *placement.Peers, w placement.Wanted) (ids []string) {
	t.Helper()
	nodes, err := p.Order(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

func check(t *testing.T, p *placement.Peers, w placement.Wanted, want ...string) {
	t.Helper()
	if got := order(t, p, w); !slices.Equal(got, want) {
		t.Errorf("the order for %+v is\n%v, not\n%v", w, got, want)
	}
}

// TestFind checks that where a session lives is remembered for a short time, and forgotten when
// the node says that it does not have it.
func TestFind(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &catalogue{places: map[string]placement.Place{"s": {NodeID: "b"}, "over": {NodeID: "b", Ended: true}}}
	p := placement.NewPeers("a", c, func() time.Time { return now })
	find := func(id, node string, reads int) {
		t.Helper()
		was := c.reads
		if place, err := p.Find(t.Context(), id); err != nil || place.NodeID != node || c.reads-was != reads {
			t.Errorf("%s is on %q after %d reads, %v; want %q after %d", id, place.NodeID, c.reads-was, err, node, reads)
		}
	}
	find("s", "b", 1)
	find("s", "b", 0)
	find("over", "b", 1)
	find("over", "b", 1) // it may be resumed at any time
	c.places["s"] = placement.Place{NodeID: "c"}
	find("s", "b", 0)
	if place, err := p.Refind(t.Context(), "s"); err != nil || place.NodeID != "c" {
		t.Errorf("it is found on %v, %v", place, err)
	}
	find("s", "c", 0)
	now = now.Add(6 * time.Second)
	find("s", "c", 1)
	if _, err := p.Find(t.Context(), "none"); !fault.Is(err, fault.SessionNotFound) {
		t.Errorf("a session that does not exist: %v", err)
	}
}

// TestForgetDuringRead checks that a list is not kept if something has changed while it was read.
func TestForgetDuringRead(t *testing.T) {
	c := &catalogue{nodes: []profiles.Node{node("b", placement.Status{})}}
	p := placement.NewPeers("a", c, time.Now)
	for _, during := range []func(){p.Forget, nil, nil} {
		c.during = during
		if _, err := p.Node(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
	}
	if c.reads != 2 {
		t.Errorf("the nodes were read %d times, want 2", c.reads)
	}
}

// TestNodesWithoutCatalogue checks that a list is used for some seconds while the catalogue
// cannot be read, and that leases count down meanwhile.
func TestNodesWithoutCatalogue(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &catalogue{nodes: []profiles.Node{node("b", placement.Status{})}}
	p := placement.NewPeers("a", c, func() time.Time { return now })
	if n, err := p.Node(t.Context(), "b"); err != nil || !n.Leased() {
		t.Fatal(n, err)
	}
	c.err = fault.New(fault.CatalogueUnavailable, "test", "")
	now = now.Add(9 * time.Second)
	if n, err := p.Node(t.Context(), "b"); err != nil || n.Left != time.Second {
		t.Errorf("after 9 s: %v, %v", n.Left, err)
	}
	now = now.Add(2 * time.Second)
	if _, err := p.Node(t.Context(), "b"); !fault.Is(err, fault.CatalogueUnavailable) {
		t.Errorf("after 11 s: %v", err)
	}
}

// TestUnreadableDocuments checks that documents of another version do no harm.
func TestUnreadableDocuments(t *testing.T) {
	n := node("b", placement.Status{Free: 4})
	n.Status = json.RawMessage(`{"free":{"chrome":1}}`)
	p := placement.NewPeers("a", &catalogue{nodes: []profiles.Node{n}}, time.Now)
	if got, err := p.Node(t.Context(), "b"); err != nil || got.Status.Free != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
