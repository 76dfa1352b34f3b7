package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// node is the process of the client libraries, bench.mjs. It does one order at a time.
type node struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	lines  *bufio.Reader
}

func startNode(clients string) (*node, error) {
	n := &node{cmd: exec.Command("node", "bench.mjs")}
	n.cmd.Dir = clients
	n.cmd.Stderr = os.Stderr
	var err error
	if n.orders, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.lines = bufio.NewReader(out)
	return n, n.cmd.Start()
}

// do sends an order and decodes the result into out; nil ignores it. It waits for the
// result even if ctx is cancelled, because each order ends.
func (n *node) do(ctx context.Context, what string, order obj, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	order["do"] = what
	raw, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if _, err := n.orders.Write(append(raw, '\n')); err != nil {
		return err
	}
	line, err := n.lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the client libraries' process ended: %w", err)
	}
	var answer struct {
		Value json.RawMessage
		Error string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
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

// close ends the process, which closes its browsers.
func (n *node) close() error {
	return errors.Join(n.orders.Close(), n.cmd.Wait())
}
