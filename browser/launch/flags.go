package launch

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stasisd/stasis/fault"
	"golang.org/x/sys/unix"
)

// The sizes that a Chrome without a display server needs: without them its
// window is 0×0 and screenshots never come.
const (
	screenWidth, screenHeight   = 1920, 1080
	defaultWidth, defaultHeight = 1280, 900
)

// nowhere is an address that Chrome never asks for: its port is one of those
// that it has blocked (net/base/port_util.cc).
const nowhere = "https://localhost:1"

// smallSharedMemory is the size of /dev/shm in bytes below which pages run
// out of it; containers get 64 MiB unless told otherwise.
const smallSharedMemory = 512 << 20

// preCommitInput has pages take input before their first frame. Without it Chrome
// drops the keys that a client types right after a navigation: with 156 on a busy
// machine the field stays empty or short (docs/typing.md). Puppeteer and
// Playwright start Chrome with it too.
const preCommitInput = "--allow-pre-commit-input"

// chromeFlags are the flags that every full Chrome is started with, whatever it
// is started for. The sandbox stays on and there is no debugging port: no flag
// here may touch either.
func chromeFlags() []string {
	return []string{
		"--remote-debugging-pipe",
		// A full Chrome without a display server, to which a profile can be
		// brought while it runs; --headless=new refuses that.
		"--ozone-platform=headless",
		fmt.Sprintf("--ozone-override-screen-size=%d,%d", screenWidth, screenHeight),
		preCommitInput,
		// Without it screenshots of tabs that are not in front hang.
		"--enable-features=CDPScreenshotNewSurface",
		// No network traffic of Chrome's own, no multicast from MediaRouter. What
		// asks in spite of these flags (the list of accounts at Google, components
		// wanted at once) is sent to an address that Chrome itself refuses to
		// open, for its port; pages reach Google as ever.
		"--disable-background-networking",
		"--disable-component-update",
		"--component-updater=url-source=" + nowhere + ",disable-pings",
		"--gaia-url=" + nowhere,
		"--disable-sync",
		"--disable-quic",
		// … no questions about the time and the forms of pages, nor renderers for a
		// suggestion list that nobody types into. No tab is thrown away when memory is
		// said to be short, as it is before Chrome is parked.
		"--disable-features=OptimizationHints,MediaRouter,DialMediaRouteProvider,Translate," +
			"NetworkTimeServiceQuerying,AutofillServerCommunication,WebUIOmniboxPopup,WebUIOmniboxAimPopup,UrgentPageDiscarding",
		"--metrics-recording-only",
		"--disable-breakpad",
		// The same Chrome on every machine, and nobody to answer a question.
		"--disable-field-trial-config",
		"--disable-default-apps",
		"--disable-search-engine-choice-screen",
		"--hide-crash-restore-bubble",
		// A page that closes the last window must not end the session.
		"--keep-alive-for-test",
		"--no-default-browser-check",
		"--no-first-run",
		"--no-service-autorun",
		// The cookie file must be readable on another machine: archives are
		// sealed instead.
		"--password-store=basic",
	}
}

// refused are the flags that nobody may add: they take the sandbox away, open
// a port, or replace what this package sets.
var refused = []string{
	"no-sandbox", "disable-setuid-sandbox", "disable-namespace-sandbox", "disable-seccomp-filter-sandbox",
	"disable-gpu-sandbox", "no-zygote", "no-zygote-sandbox", "single-process", "remote-debugging-port",
	"remote-debugging-address", "remote-debugging-pipe", "remote-debugging-targets", "remote-allow-origins",
	"user-data-dir", "profile-directory", "disk-cache-dir", "enable-features", "disable-features",
	"renderer-cmd-prefix", "utility-cmd-prefix", "gpu-launcher",
}

// arguments returns Chrome's whole command line, without the program's name.
func arguments(o Options) ([]string, error) {
	for _, arg := range o.ExtraArgs {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		for _, no := range refused {
			if name == no {
				return nil, fault.New(fault.Unsupported, "launch.arguments", "Chrome's flag --%s cannot be set", name)
			}
		}
		if !strings.HasPrefix(arg, "--") || name == "" {
			return nil, fault.New(fault.Unsupported, "launch.arguments", "extra arguments of Chrome must be flags")
		}
	}
	width, height := o.Width, o.Height
	if width <= 0 || height <= 0 {
		width, height = defaultWidth, defaultHeight
	}
	args := chromeFlags()
	if o.Shell {
		args, height = shellFlags(), height-interfaceHeight
	}
	args = append(args,
		fmt.Sprintf("--window-size=%d,%d", width, height),
		userDataDirFlag+o.Dir.Profile(),
	)
	if !o.Shell {
		args = append(args, "--disk-cache-dir="+filepath.Join(o.Dir.Path, "home", "cache"))
	}
	if o.Profile != "" && !o.Shell {
		args = append(args, "--profile-directory="+o.Profile)
	}
	if sharedMemory() < smallSharedMemory {
		args = append(args, "--disable-dev-shm-usage")
	}
	args = append(args, o.ExtraArgs...)
	if o.URL != "" {
		args = append(args, o.URL)
	}
	return args, nil
}

// portable leaves out what names folders of this machine, and addresses.
func portable(args []string) []string {
	var flags []string
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(arg, "--") && name != "--user-data-dir" && name != "--disk-cache-dir" {
			flags = append(flags, arg)
		}
	}
	return flags
}

// environment returns all that Chrome sees of the environment: its own
// folders, and nothing of the daemon's.
func environment(dir *Dir, timezone string) []string {
	home := filepath.Join(dir.Path, "home")
	env := []string{
		"HOME=" + home,
		"TMPDIR=" + dir.tmp(),
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		"XDG_DATA_HOME=" + filepath.Join(home, "data"),
		"XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"XDG_RUNTIME_DIR=" + dir.tmp(),
	}
	if timezone != "" {
		env = append(env, "TZ="+timezone)
	}
	return env
}

// sharedMemory returns the size of /dev/shm in bytes, 0 if there is none.
func sharedMemory() uint64 {
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil {
		return 0
	}
	return fs.Blocks * uint64(fs.Bsize)
}
