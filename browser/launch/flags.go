package launch

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stasisd/stasis/fault"
	"golang.org/x/sys/unix"
)

// Screen and window sizes for a Chrome without a display server. Without them its window
// is 0×0 and screenshots never finish.
const (
	screenWidth, screenHeight   = 1920, 1080
	defaultWidth, defaultHeight = 1280, 900
)

// blockedURL is an address that Chrome never connects to, because its port is on Chrome's
// list of blocked ports (net/base/port_util.cc).
const blockedURL = "https://localhost:1"

// smallSharedMemory is the size of /dev/shm in bytes below which pages run out of shared
// memory. Containers have 64 MiB by default.
const smallSharedMemory = 512 << 20

// preCommitInput lets pages accept input before their first frame. Without it Chrome
// drops keys that a client types right after a navigation: with 156 on a busy machine the
// field stays empty or incomplete (docs/typing.md). Puppeteer and Playwright also start
// Chrome with it.
const preCommitInput = "--allow-pre-commit-input"

// clientFlags returns the flags that CDP client libraries give a Chrome that they start, as
// far as a client or a page would miss them. docs/decisions/chrome-switches.md has the
// others.
func clientFlags() []string {
	return []string{
		preCommitInput,
		// A page that a client goes back to is loaded again. From the cache it would come
		// back without the events that clients wait for.
		"--disable-back-forward-cache",
		// Pages open windows without a click, because nobody could click Chrome's notice of
		// a blocked one.
		"--disable-popup-blocking",
		// A page may change its address more often than 200 times in 10 s.
		"--disable-ipc-flooding-protection",
		// Without an input device Chrome reports no pointer, and sites drop menus that
		// open on hover. 2 is hover, 4 is a fine pointer (ui/base/pointer).
		"--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
	}
}

// chromeFlags returns the flags of every full Chrome. The sandbox stays on and there is
// no debugging port; no flag here may change either.
func chromeFlags() []string {
	return append(clientFlags(),
		"--remote-debugging-pipe",
		// Full Chrome without a display server. It can open another profile while it runs,
		// which --headless=new refuses.
		"--ozone-platform=headless",
		fmt.Sprintf("--ozone-override-screen-size=%d,%d", screenWidth, screenHeight),
		// Without this, screenshots of tabs in the background hang.
		"--enable-features=CDPScreenshotNewSurface",
		// No network traffic of Chrome itself, and no multicast from MediaRouter. Some
		// requests ignore these flags (the list of Google accounts, components that are
		// needed at once). They go to an address that Chrome itself refuses because of its
		// port. Pages can still reach Google.
		"--disable-background-networking",
		"--disable-component-update",
		"--component-updater=url-source="+blockedURL+",disable-pings",
		"--gaia-url="+blockedURL,
		"--disable-sync",
		"--disable-quic",
		// These features query the time, send the forms of pages to Google, or start
		// renderers for a suggestion list that is never used. UrgentPageDiscarding would
		// discard tabs when memory is reported as low, which happens before Chrome is
		// parked. DnsOverHttpsUpgrade would look names up beside the resolver of a session
		// whose egress has names of hosts.
		"--disable-features=OptimizationHints,MediaRouter,DialMediaRouteProvider,Translate,"+
			"NetworkTimeServiceQuerying,AutofillServerCommunication,WebUIOmniboxPopup,WebUIOmniboxAimPopup,UrgentPageDiscarding,DnsOverHttpsUpgrade",
		"--metrics-recording-only",
		"--disable-breakpad",
		// Same behaviour on every machine, and no dialogs that wait for a user.
		"--disable-field-trial-config",
		"--disable-default-apps",
		"--disable-search-engine-choice-screen",
		"--hide-crash-restore-bubble",
		// Keep Chrome running when a page closes the last window.
		"--keep-alive-for-test",
		"--no-default-browser-check",
		"--no-first-run",
		"--no-service-autorun",
		// The cookie file must be readable on another machine. Archives are encrypted
		// instead.
		"--password-store=basic",
	)
}

// refused are the flags that callers may not add: they disable the sandbox, open a port,
// or override what this package sets.
var refused = []string{
	"no-sandbox", "disable-setuid-sandbox", "disable-namespace-sandbox", "disable-seccomp-filter-sandbox",
	"disable-gpu-sandbox", "no-zygote", "no-zygote-sandbox", "single-process", "remote-debugging-port",
	"remote-debugging-address", "remote-debugging-pipe", "remote-debugging-targets", "remote-allow-origins",
	"user-data-dir", "profile-directory", "disk-cache-dir", "enable-features", "disable-features", "blink-settings",
	"renderer-cmd-prefix", "utility-cmd-prefix", "gpu-launcher",
}

// arguments returns Chrome's complete command line, without the program's name.
func arguments(o Options) ([]string, error) {
	for _, arg := range o.ExtraArgs {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		for _, no := range refused {
			if name == no {
				return nil, fault.New(fault.Unsupported, "launch.arguments", "extra arguments: Chrome's flag --%s cannot be set", name)
			}
		}
		if !strings.HasPrefix(arg, "--") || name == "" {
			return nil, fault.New(fault.Unsupported, "launch.arguments", "extra arguments: each must be a flag that begins with --")
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

// portable returns the flags without those that contain paths of this machine, and
// without addresses.
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

// environment returns Chrome's environment variables: its own folders, and nothing of the
// daemon's environment.
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
