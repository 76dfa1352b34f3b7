package e2e

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// unprivileged is the user ID of daemons that do not run as root.
const unprivileged = 12345

// byOrdinaryUser returns the options with which that user runs the daemon. The user gets
// the data directory, which is made if o names none, and the other folders.
func byOrdinaryUser(t testing.TB, o daemon.Options, others ...string) daemon.Options {
	t.Helper()
	if o.Dir == "" {
		o.Dir = daemon.DataDir(t)
	}
	for _, folder := range append(others, o.Dir) {
		if err := errors.Join(os.Chown(folder, unprivileged, unprivileged), os.Chmod(folder, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	o.Env = append(slices.Clone(o.Env), homeIn(o.Dir)...)
	o.Prefix = setpriv(unprivileged)
	return o
}

// byOrdinaryUserWithTun is [byOrdinaryUser] where that user may open /dev/net/tun, as on an
// installed Debian. In the machines of the tests only root may.
func byOrdinaryUserWithTun(t testing.TB, o daemon.Options, others ...string) daemon.Options {
	t.Helper()
	o = byOrdinaryUser(t, o, others...)
	o.Prefix = append(withTun(), o.Prefix...)
	return o
}

// withTun returns the command prefix that runs a command where everybody may open
// /dev/net/tun: in a mount namespace that has another device file there.
func withTun() []string {
	return []string{"unshare", "--mount", "--", "sh", "-c", `mount -t tmpfs none /mnt && mknod -m 666 /mnt/tun c 10 200 && mount --bind /mnt/tun /dev/net/tun && umount -l /mnt && exec "$@"`, "sh"}
}

// homeIn is the environment of a program whose user has no other home folder.
func homeIn(dir string) []string { return []string{"HOME=" + dir, "TMPDIR=" + dir} }

// setpriv returns the command prefix that runs a command as a user.
func setpriv(uid int) []string {
	id := strconv.Itoa(uid)
	return []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--"}
}

// attacked returns the options of a daemon that a test attacks: an ordinary user runs it if
// STASIS_ATTACKED is "ordinary user", as in the second half of `make attack`, otherwise the
// user of the test.
func attacked(t testing.TB, o daemon.Options) daemon.Options {
	t.Helper()
	if !ordinaryUserIsAttacked() {
		return o
	}
	return byOrdinaryUser(t, o)
}

func ordinaryUserIsAttacked() bool { return os.Getenv("STASIS_ATTACKED") == "ordinary user" }
