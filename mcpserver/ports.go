package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stasisd/stasis/client"
)

// Port is an open DevTools port.
type Port struct {
	Number int
	Done   <-chan struct{} // closed when the port is: its session has ended, or Close was called
	Close  func()          // closes the port and returns when it is free
}

// Attach serves a session at a DevTools port of this machine until ctx ends or the session
// does. number 0 takes a free port. If another program listens there, the error is [ErrPortTaken].
type Attach func(ctx context.Context, session string, number int) (*Port, error)

// ErrPortTaken is the error of an [Attach] if another program listens on the port.
var ErrPortTaken = errors.New("another program listens on the port")

// ports are the DevTools ports that this server has opened, by number.
type ports struct {
	mu   sync.Mutex
	open map[int]heldPort
}

type heldPort struct {
	*Port
	session string
}

// close closes the ports of a session.
func (p *ports) close(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for number, held := range p.open {
		if held.session == session {
			held.Close()
			delete(p.open, number)
		}
	}
}

// take opens a port for a session. A port that this server holds for another session moves to
// this one.
func (p *ports) take(ctx context.Context, attach Attach, session string, number int) (*Port, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	moved := ""
	if held, ok := p.open[number]; ok {
		select {
		case <-held.Done:
		default:
			if held.session == session {
				return held.Port, nil
			}
			moved = held.session
		}
		held.Close()
		delete(p.open, number)
	}
	opened, err := attach(ctx, session, number)
	if err != nil && moved != "" {
		err = fmt.Errorf("%w; the port of session %s is closed now: call open_devtools_port for that session again", err, moved)
	}
	if err != nil {
		return nil, err
	}
	p.open[opened.Number] = heldPort{opened, session}
	return opened, nil
}

type portInput struct {
	Session string `json:"session_id" jsonschema:"the session"`
	Port    int    `json:"port,omitempty" jsonschema:"the port of this machine, such as 9222; by default a free one. A port that an earlier call opened for another session moves to this one"`
}

type port struct {
	Address string `json:"address" jsonschema:"such as http://127.0.0.1:9222; the port is free again after save_session with end, after end_session, and when this server ends"`
}

func (s *server) attach(ctx context.Context, api *client.Client, in portInput) (port, error) {
	if in.Port < 0 || in.Port > 65535 {
		return port{}, errors.New("port: must be from 1 to 65535; without it, the tool takes a free port")
	}
	found, err := api.Session(ctx, in.Session)
	if err != nil {
		return port{}, err
	}
	if found.EndedAt != nil {
		return port{}, errors.New("session_id: this session has ended; start another one with start_session")
	}
	opened, err := s.ports.take(s.ctx, s.Attach, in.Session, in.Port)
	if errors.Is(err, ErrPortTaken) {
		return port{}, fmt.Errorf("port: another program of this machine listens on port %d, for example a second stasis mcp or a Chrome; "+
			"ask the person to end that program, or call open_devtools_port without port if your browser tool can connect to any address", in.Port)
	}
	if err != nil {
		return port{}, err
	}
	return port{fmt.Sprintf("http://127.0.0.1:%d", opened.Number)}, nil
}
