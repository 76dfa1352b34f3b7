package launch

import "syscall"

// WardenArg is the first argument that makes the binary a warden.
const WardenArg = "warden"

// wardenName is the warden's process name. It differs from the daemon's, so
// that killing the daemon by name leaves the warden to end Chrome.
const wardenName = "chrome-warden"

// The warden's inherited file descriptors.
const (
	fdRequests = 3 // Chrome reads CDP messages here
	fdAnswers  = 4 // Chrome writes CDP messages here
	fdLifeline = 5
	fdReports  = 6
)

// order tells the warden what to start; it is the lifeline's first line.
type order struct {
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string
	UID  int // user and group to become; negative: stay

	Grants []grant  // all files that Landlock leaves to Chrome; none: no Landlock
	Denied []string // files and folders that exist and that it must refuse
}

// report is what the warden says: first that Chrome started (PID) or could
// not (Errno, or Unconfined for Landlock), then, with Exited, how Chrome's main process ended.
type report struct {
	PID        int           `json:"pid,omitempty"`
	Errno      syscall.Errno `json:"errno,omitempty"`
	Unconfined string        `json:"unconfined,omitempty"` // why Landlock does not hold
	Exited     bool          `json:"exited,omitempty"`
	Code       int           `json:"code,omitempty"`
	Signal     int           `json:"signal,omitempty"`
}
