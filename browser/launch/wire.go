package launch

import (
	"syscall"
	"time"

	"github.com/stasisd/stasis/browser/netns"
)

// WardenArg is the first argument that makes the binary run as a warden.
const WardenArg = "warden"

// wardenName is the warden's process name. It differs from the daemon's name, so that
// killing the daemon by name leaves the warden to end Chrome.
const wardenName = "chrome-warden"

// The warden's inherited file descriptors.
const (
	fdRequests = 3 // Chrome reads CDP messages here
	fdAnswers  = 4 // Chrome writes CDP messages here
	fdLifeline = 5
	fdReports  = 6
)

// releaseByte on the lifeline says that the files of the environment are in place.
const releaseByte = 'r'

// extendByte on the lifeline begins a line that moves the deadline; see [Deadline].
const extendByte = 'd'

// order says what the warden starts. It is the first line on the lifeline.
type order struct {
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string
	UID  int // user and group to switch to; negative: keep the daemon's

	Grants []grant  // all files that Chrome may use under Landlock; none: no Landlock
	Denied []string // existing files and folders that Landlock must refuse

	Hold bool // opens of databases wait for releaseByte

	// Limits of Chrome's processes (getrlimit(2)); 0: none. Tasks counts those of Chrome's
	// user.
	Files, Tasks uint64

	Until time.Duration // the first deadline, as BootTime counts; 0: none. See [Deadline]

	Network *netns.Order // the network namespace of Chrome's own; nil: it uses the daemon's
}

// report is a message of the warden. The first says that Chrome started (PID) or failed
// to (Errno, Unconfined for Landlock, HoldFailed, or NetworkFailed). The last, with Exited, says how Chrome's
// main process ended.
type report struct {
	PID           int           `json:"pid,omitempty"`
	Errno         syscall.Errno `json:"errno,omitempty"`
	Unconfined    string        `json:"unconfined,omitempty"`     // why Landlock is not effective
	HoldFailed    string        `json:"hold_failed,omitempty"`    // why opens cannot wait
	NetworkFailed string        `json:"network_failed,omitempty"` // why there is no network namespace
	Ready         bool          `json:"ready,omitempty"`          // only from a stage to its warden: pasta may start
	Exited        bool          `json:"exited,omitempty"`
	Code          int           `json:"code,omitempty"`
	Signal        int           `json:"signal,omitempty"`
}
