package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/coder/websocket"
)

// The descriptors of the relay's process.
const (
	fdListener = iota + 3
	fdAnswers  // from Chrome
	fdCommands // to Chrome
)

// relayed starts a Chrome with flags, and a relay process that joins its pipe with a
// WebSocket.
func (b *bench) relayed(ctx context.Context, flags []string) (_ server, err error) {
	browser, err := b.startSibling(ctx, filepath.Join(b.scratch, "relayed"), "--remote-debugging-pipe", flags)
	if err != nil {
		return server{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return server{}, err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return server{}, err
	}
	socket, err := listener.File()
	if err != nil {
		return server{}, errors.Join(err, listener.Close())
	}
	ends := []*os.File{socket, nil, nil, nil, nil}
	defer func() {
		for _, f := range ends {
			err = errors.Join(err, f.Close())
		}
		err = errors.Join(err, listener.Close())
	}()
	var piped error
	if ends[1], ends[2], err = os.Pipe(); err != nil {
		return server{}, err
	}
	if ends[3], ends[4], piped = os.Pipe(); piped != nil {
		return server{}, piped
	}
	browser.ExtraFiles = []*os.File{ends[3], ends[2]}
	relay := exec.CommandContext(ctx, self, "-relay")
	relay.Stderr = os.Stderr
	relay.ExtraFiles = []*os.File{socket, ends[1], ends[4]}
	if err := browser.Start(); err != nil {
		return server{}, err
	}
	if err := relay.Start(); err != nil {
		return server{}, errors.Join(err, killTree(browser))
	}
	end := func() error {
		err := relay.Process.Kill()
		_ = relay.Wait() // the error only says that it was killed
		return errors.Join(err, killTree(browser))
	}
	return server{"ws://" + listener.Addr().String(), relay.Process.Pid, end}, nil
}

// relay passes the messages between one WebSocket and Chrome's pipe unchanged, with two
// goroutines. It runs until it is killed.
func relay() error {
	// Non-blocking like the daemon's own ends of its pipes, so that waiting takes no
	// thread.
	for _, fd := range []int{fdAnswers, fdCommands} {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	answers, commands := os.NewFile(fdAnswers, "answers"), os.NewFile(fdCommands, "commands")
	listener, err := net.FileListener(os.NewFile(fdListener, "listener"))
	if err != nil {
		return err
	}
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // Accept has written the error response
		}
		defer ws.CloseNow() //nolint:errcheck // the connection is closed anyway
		ws.SetReadLimit(-1)
		ctx := context.Background()
		go func() {
			for in := bufio.NewReaderSize(answers, 64<<10); ; {
				msg, err := in.ReadBytes(0)
				if err == nil {
					err = ws.Write(ctx, websocket.MessageText, bytes.TrimSuffix(msg, []byte{0}))
				}
				if err != nil {
					return
				}
			}
		}()
		for {
			_, msg, err := ws.Read(ctx)
			if err != nil {
				return
			}
			if _, err := commands.Write(append(msg, 0)); err != nil {
				return
			}
		}
	}))
}
