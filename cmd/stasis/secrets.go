package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

const (
	// keyFile is the file in the data directory with the API key that the first start makes.
	keyFile = "api-key"
	// keyVariable is the environment variable with an API key: for the daemon the operator's
	// own first key, for other verbs the key that they send.
	keyVariable = "STASIS_API_KEY"
	// identityVariable is the environment variable with the text of an age identity file.
	identityVariable = "STASIS_IDENTITY"
)

// readKeyFile reads a file with a secret. It refuses a file that every user can read,
// because Chrome runs on this machine too.
func readKeyFile(flag, path string) (text string, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Config, "keys", "%s: the file %s does not exist", flag, path)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Config, "keys", flag+": cannot be read")
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", fault.Wrap(err, fault.Config, "keys", flag+": cannot be read")
	case info.IsDir():
		return "", fault.New(fault.Config, "keys", "%s: %s is a folder, not a file", flag, path)
	case info.Mode().Perm()&0o007 != 0:
		return "", fault.New(fault.Config, "keys", "%s: every user can read %s; set its mode to 0600", flag, path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, snapshot.MaxKeyFile+1))
	if err == nil && len(raw) > snapshot.MaxKeyFile {
		err = fmt.Errorf("larger than %d bytes", snapshot.MaxKeyFile)
	}
	return string(raw), fault.Wrap(err, fault.Config, "keys", flag+": cannot be read")
}

// withoutSecrets returns an environment without the secrets of this program.
func withoutSecrets(environ []string) []string {
	var kept []string
	for _, one := range environ {
		if name, _, _ := strings.Cut(one, "="); name != keyVariable && name != identityVariable {
			kept = append(kept, one)
		}
	}
	return kept
}
