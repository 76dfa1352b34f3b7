package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// person is who logs in, at the terminal where the command runs.
type person struct {
	did      chan deed
	terminal bool // the input is a terminal, so questions can be asked
	out      io.Writer
}

// deed is what the person did.
type deed struct {
	kind deedKind
	line string // with kind typed
}

type deedKind int

const (
	typed       deedKind = iota // a line
	inputEnded                  // Ctrl-D, or the end of a file or pipe
	interrupt                   // Ctrl-C
	termination                 // SIGTERM, or SIGHUP: the terminal was closed
)

// Errors of a login that ends without a save.
var (
	errDiscard    = errors.New("the person discards the login")
	errInputEnded = errors.New("the input ended")
)

// newPerson starts to read the standard input and to receive signals, until stop is called.
func newPerson() (p *person, stop func()) {
	p = &person{did: make(chan deed), terminal: term.IsTerminal(int(os.Stdin.Fd())), out: os.Stdout}
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	does := func(d deed) bool {
		select {
		case p.did <- d:
			return true
		case <-done:
			return false
		}
	}
	go func() { // outlives stop if the input has neither a line nor an end
		for in, err := bufio.NewReader(os.Stdin), error(nil); err == nil; {
			d := deed{}
			d.line, err = in.ReadString('\n')
			switch {
			case errors.Is(err, io.EOF) && p.terminal:
				d.kind, err = inputEnded, nil // after Ctrl-D a terminal can be read again
			case err != nil:
				d.kind = inputEnded
			}
			if !does(d) {
				return
			}
		}
	}()
	go func() {
		for {
			select {
			case s := <-signals:
				d := deed{kind: termination}
				if s == os.Interrupt {
					d.kind = interrupt
				}
				does(d)
			case <-done:
				return
			}
		}
	}()
	return p, func() { signal.Stop(signals); close(done) }
}

// reply is what the person answers to a question.
type reply int

const (
	answeredNo reply = iota
	answeredYes
	unanswered // Ctrl-C, Ctrl-D or a signal came instead
)

// ask asks a question whose default is no. It returns the error of over if one comes first.
func (p *person) ask(question string, over <-chan error) (reply, error) {
	p.say("%s [y/N] ", question)
	select {
	case d := <-p.did:
		switch strings.ToLower(strings.TrimSpace(d.line)) {
		case "y", "yes":
			return answeredYes, nil
		}
		if d.kind != typed {
			p.say("\n")
			return unanswered, nil
		}
		return answeredNo, nil
	case err := <-over:
		p.say("\n")
		return unanswered, err
	}
}

// say prints to the person. A terminal that is gone is found when it is read.
func (p *person) say(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }
