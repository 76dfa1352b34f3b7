package launch

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
)

// What every Chrome may use of the machine, as seen with strace of Debian's
// Chromium 156 and its headless shell, and by leaving out one after the other.
var (
	// Shared libraries, with the loader, which the kernel executes.
	libraryFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}
	// Fonts and their settings, time zones, translations, keyboards, certificates,
	// policies of the machine's administrator, and the number of cores.
	dataFolders = []string{
		"/usr/share/fonts", "/usr/local/share/fonts", "/etc/fonts", "/usr/share/fontconfig", "/var/cache/fontconfig",
		"/usr/share/zoneinfo", "/usr/share/locale", "/usr/share/X11", "/usr/share/glib-2.0", "/usr/share/mime",
		"/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
		"/etc/chromium", "/etc/opt/chrome",
		"/sys/devices/system/cpu",
	}
	// Names of hosts, the time zone, and where libraries are.
	dataFiles = []string{
		"/etc/hosts", "/etc/host.conf", resolvConf, "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
		"/etc/localtime", "/etc/timezone", "/etc/os-release", "/etc/ld.so.cache",
	}
	deviceFiles = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}
	// What a script in Chrome's place runs: distributions put one before it.
	scriptFolders = []string{"/bin", "/usr/bin", "/etc/chromium.d"}
)

// resolvConf names the machine's DNS servers.
const resolvConf = "/etc/resolv.conf"

// grants returns what a Chrome may use that runs the binary in the directory: the
// folder of the binary, the lists above, and its own run directory. Nothing else of
// the machine's files is within its reach.
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
	// Chrome's sandbox writes the maps of its user namespace to /proc/self, and a
	// rule cannot name processes that do not run yet. The kernel's own checks still
	// hold: nothing in there of a process outside needs Chrome's user alone, since
	// Landlock refuses what ptrace would be needed for (environ, mem, fd, root, cwd).
	give(procFolder, "/proc")
	give(shareFolder, "/dev/shm")
	give(ownFolder, dir.Path)
	return all
}

// resolverFolder returns the folder below /run that a linked resolv.conf leads to,
// if it does. Network managers replace the file in there, and a rule for the file
// alone would not hold for the next one.
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

// isScript reports whether the file begins as a script does.
func isScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false // its start fails, and says why
	}
	defer func() { _ = file.Close() }() // only read from
	head := make([]byte, 2)
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == "#!"
}
