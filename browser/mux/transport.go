package mux

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/chromedp"
)

// Transport is a trusted client in the process, in chromedp's own terms: for
// chromedp.NewBrowserTransport. It is not counted among Clients.
type Transport struct {
	in     *queue[[]byte] // from chromedp
	out    *queue[[]byte] // from Chrome
	cancel context.CancelFunc
	all    sync.WaitGroup
}

var _ chromedp.Transport = (*Transport)(nil)

// Transport connects one. It ends with ctx, with Close or with Chrome.
func (m *Mux) Transport(ctx context.Context) *Transport {
	ctx, cancel := context.WithCancel(ctx)
	t := &Transport{in: newQueue[[]byte](), out: newQueue[[]byte](), cancel: cancel}
	t.all.Go(t.in.pump)
	t.all.Go(t.out.pump)
	t.all.Go(func() {
		// How it ended shows in Read, which then gives io.EOF.
		_ = m.serve(ctx, (*transportConn)(t), ServeOptions{}, true)
	})
	return t
}

// Read gives the next message of Chrome; io.EOF after the end.
func (t *Transport) Read(ctx context.Context, msg *cdproto.Message) error {
	select {
	case b, ok := <-t.out.out:
		if !ok {
			return io.EOF
		}
		return jsonv2.Unmarshal(b, msg, jsonv2.AllowInvalidUTF8(true))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Write sends a message to Chrome.
func (t *Transport) Write(_ context.Context, msg *cdproto.Message) error {
	b, err := jsonv2.Marshal(msg, jsonv2.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("encoding %s: %w", msg.Method, err)
	}
	t.in.push(b)
	return nil
}

// Close disconnects. It is idempotent.
func (t *Transport) Close() error {
	t.cancel()
	t.in.stop()
	t.out.stop()
	t.all.Wait()
	return nil
}

// transportConn is the mux's side of a Transport.
type transportConn Transport

func (t *transportConn) Read(ctx context.Context) ([]byte, error) {
	select {
	case b, ok := <-t.in.out:
		if !ok {
			return nil, io.EOF
		}
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *transportConn) Write(_ context.Context, msg []byte) error {
	t.out.push(msg)
	return nil
}

func (t *transportConn) Close(int, string) error {
	t.in.stop()
	t.out.finish()
	return nil
}
