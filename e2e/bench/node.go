package main

import (
	"context"

	"github.com/stasisd/stasis/e2e/rig"
)

// node is the process of the client libraries, bench.mjs.
type node struct{ *rig.Node }

func startNode(clients string) (*node, error) {
	n, err := rig.StartNode(clients, "bench.mjs")
	if err != nil {
		return nil, err
	}
	return &node{n}, nil
}

// do sends an order and decodes the result into out; nil ignores it. It waits for the
// result even if ctx is cancelled, because each order ends.
func (n *node) do(ctx context.Context, what string, order obj, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	order["do"] = what
	return n.Do(order, out)
}

// time sends an order and returns the times that bench.mjs measured.
func (n *node) time(ctx context.Context, what string, order obj) (map[string]float64, error) {
	var got struct{ Times map[string]float64 }
	err := n.do(ctx, what, order, &got)
	return withTotal(got.Times), err
}

// withTotal stores the total time under "", the key of the measure itself.
func withTotal(times map[string]float64) map[string]float64 {
	if whole, ok := times["done"]; ok {
		times[""] = whole
		delete(times, "done")
	}
	return times
}
