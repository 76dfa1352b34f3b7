package launch

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
)

// The files of the machine that every Chrome may use. strace of Debian's Chromium 156 and
// its headless shell shows that they open nearly all of them. The certificates and the
// paths that Debian does not have are for other distributions and versions. Both also try
// to open the rest of /sys (terminals, the machine's model, cgroups), /dev/dri,
// /run/dbus, /run/dconf and /etc/vulkan. They run without those.
var (
	// Shared libraries, and the loader, which the kernel executes.
	libraryFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}
	// Fonts and their configuration, time zones, translations, GLib settings, certificates,
	// policies of the machine's administrator, and the number of cores.
	dataFolders = []string{
		"/usr/share/fonts", "/usr/local/share/fonts", "/etc/fonts", "/usr/share/fontconfig", "/var/cache/fontconfig",
		"/usr/share/zoneinfo", "/usr/share/locale", "/usr/share/glib-2.0",
		"/etc/ssl/certs", "/usr/share/ca-certificates", "/etc/pki/ca-trust",
		"/etc/chromium", "/etc/opt/chrome",
		"/sys/devices/system/cpu",
	}
	// Host names, the time zone, and the paths of libraries.
	dataFiles = []string{
		"/etc/hosts", "/etc/host.conf", resolvConf, "/etc/nsswitch.conf", "/etc/gai.conf",
		"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/os-release", "/etc/ld.so.cache",
	}
	deviceFiles = []string{"/dev/null", "/dev/urandom"}
	// What a wrapper script runs that a distribution installed in place of Chrome.
	scriptFolders = []string{"/bin", "/usr/bin", "/etc/chromium.d"}
)

// resolvConf lists the machine's DNS servers.
const resolvConf = "/etc/resolv.conf"

// grants returns everything that a Chrome with this binary and run directory may use: the
// binary's folder, the lists above, and the run directory. All other files of the machine
// are refused.
func grants(binary string, dir *Dir) []grant {
	var all []grant
	give := func(access landlock.AccessFSSet, paths ...string) {
		for _, path := range paths {
			all = append(all, grant{Path: path, Access: access})
		}
	}
	give(runFolder, libraryFolders...)
	if target, err := filepath.EvalSymlinks(binary); err == nil {
		give(runFolder, filepath.Dir(target))
	}
	if isScript(binary) {
		give(runFolder, scriptFolders...)
	}
	give(readFolder, dataFolders...)
	give(readFile, dataFiles...)
	give(readFolder, resolverFolder(resolvConf)...)
	give(writeFile, deviceFiles...)
	// Chrome's sandbox writes the maps of its user namespace to /proc/self. A rule cannot
	// name processes that do not run yet. The kernel's own checks still apply: Landlock
	// refuses what would need ptrace (environ, mem, fd, root, cwd), so nothing about a
	// process outside is readable only because of Chrome's user.
	give(procFolder, "/proc")
	give(shareFolder, "/dev/shm") // 156 shares memory with memfd_create; older versions use this
	give(ownFolder, dir.Path)
	return all
}

// resolverFolder returns the folder below /run that a linked resolv.conf points to, if
// any. Network managers replace the file in that folder, and a rule for the old file
// would not cover the new one.
func resolverFolder(link string) []string {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return nil
	}
	folder := filepath.Dir(target)
	if !strings.HasPrefix(folder, "/run/") {
		return nil
	}
	return []string{folder}
}

// isScript reports whether the file begins with "#!".
func isScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false // the start then fails and reports why
	}
	defer func() { _ = file.Close() }() // only read from
	head := make([]byte, 2)
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == "#!"
}
