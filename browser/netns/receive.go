//go:build linux

package netns

import (
	"encoding/json"
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxSockets is how many sockets a stage sends at most.
const maxSockets = 32

type received struct {
	role
	file *os.File
}

// receiveSockets receives the sockets of a stage.
func receiveSockets(conn *net.UnixConn) (all []received, err error) {
	line, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*maxSockets))
	n, m, _, _, err := conn.ReadMsgUnix(line, rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("the stage ended early")
	}
	var fds []int
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err == nil && len(messages) == 1 {
		fds, err = unix.ParseUnixRights(&messages[0])
	}
	var roles []role
	if err == nil {
		err = json.Unmarshal(line[:n], &roles)
	}
	if err == nil && len(roles) != len(fds) {
		err = errors.New("a stage sent another number of sockets than it said")
	}
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		if err != nil {
			_ = unix.Close(fd)
			continue
		}
		all = append(all, received{roles[i], os.NewFile(uintptr(fd), roles[i].Name)})
	}
	return all, err
}
