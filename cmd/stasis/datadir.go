package main

import (
	"os"
	"path/filepath"

	"github.com/stasisd/stasis/fault"
)

// dataDirOf returns the absolute path of the data directory. dir is --data-dir, "" if it is
// not given.
func dataDirOf(dir string) (string, error) {
	const op = "storage.data_dir"
	if dir == "" {
		var err error
		if dir, err = defaultDataDir(); err != nil {
			return "", fault.Wrap(err, fault.Config, op, "--data-dir: there is no home directory for the default; give a directory")
		}
	}
	dir, err := filepath.Abs(dir)
	return dir, fault.Wrap(err, fault.Config, op, "--data-dir: cannot be used")
}

// defaultDataDir returns the data directory if no flag names one. For root it is a place
// that Chrome's users can reach, which /root is not.
func defaultDataDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/stasis", nil
	}
	if data := os.Getenv("XDG_DATA_HOME"); data != "" {
		return filepath.Join(data, "stasis"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share", "stasis"), err
}
