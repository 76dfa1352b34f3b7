package e2e

import "os"

// long reports whether tests run in their long form: make test-long. Otherwise a test that
// takes long by nature runs its short form.
func long() bool { return os.Getenv("STASIS_LONG") != "" }
