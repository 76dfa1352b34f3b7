package launch

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// commandLineDeadline bounds the wait for Chrome's answer, which takes 1–10 ms, and much longer
// with a small share of the processors.
const commandLineDeadline = 30 * time.Second

// SendCommandLine sends a command line to the running Chrome, as a second start of Chrome
// with the same user data directory would. With --profile-directory Chrome opens a
// further profile. The message format is Chrome's own (process_singleton_posix.cc):
// START, the working directory and the arguments, separated by NULs. Chrome answers ACK.
// Any other answer, or none, is an error; older Chromes of this kind never answer.
func (p *Process) SendCommandLine(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandLineDeadline)
	defer cancel()
	socket, err := os.Readlink(filepath.Join(p.dir.Profile(), "SingletonSocket"))
	if err != nil {
		return err
	}
	// Chrome writes the link. A link to a place outside Chrome's own folder is not
	// followed.
	if !strings.HasPrefix(filepath.Clean(socket), p.dir.tmp()+string(filepath.Separator)) {
		return errors.New("the singleton socket of Chrome is outside its own folder")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only the answer matters
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	message := append([]string{"START", p.dir.Path, "chromium"}, args...)
	if _, err := io.WriteString(conn, strings.Join(message, "\x00")); err != nil {
		return err
	}
	answer := make([]byte, 16)
	n, err := conn.Read(answer)
	switch {
	case ctx.Err() != nil:
		return errUnanswered
	case err != nil:
		return err
	case !strings.HasPrefix(string(answer[:n]), "ACK"):
		return errors.New("the running Chrome refused: " + string(answer[:n]))
	}
	return nil
}

// errUnanswered is the error of SendCommandLine for a Chrome that accepts no command lines.
var errUnanswered = errors.New("no answer from Chrome to a command line")
