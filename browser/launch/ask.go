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

// askDeadline bounds the wait for Chrome's answer, which takes it 1–10 ms.
const askDeadline = 10 * time.Second

// Ask hands the running Chrome a command line, as a second start of Chrome on
// the same user data directory would; with --profile-directory it opens a
// further profile. The message is Chrome's own (process_singleton_posix.cc):
// START, the working directory and the arguments, each behind a NUL; Chrome
// answers ACK. A Chrome that does not is an error: older ones of this flavour
// never answer.
func (p *Process) Ask(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	socket, err := os.Readlink(filepath.Join(p.dir.Profile(), "SingletonSocket"))
	if err != nil {
		return err
	}
	// Chrome writes the link; one that names a place outside is not followed.
	if !strings.HasPrefix(filepath.Clean(socket), p.dir.tmp()+string(filepath.Separator)) {
		return errors.New("the socket that Chrome names is not in its own folder")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the answer is what counts
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

// errUnanswered is how Ask ends with a Chrome that takes no command lines.
var errUnanswered = errors.New("no answer to a command line")
