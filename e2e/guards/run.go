package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Outcomes of a guard.
const (
	failedAsExpected = "fails"
	stillPasses      = "STILL PASSES"
	failedOtherwise  = "FAILS OTHERWISE"
	doesNotBuild     = "DOES NOT BUILD"
	notSeen          = "FAILURE NOT SEEN"
	builds           = "builds"
)

// runner runs tests against daemons without a guard.
type runner struct {
	root    string
	folder  string // for the changed files
	timeout time.Duration
	tests   string // the binary of the tests
}

// compile builds the tests of e2e, with all guards. They build the daemon themselves when
// they run, so that what changes it is only the environment of the tests.
func (r *runner) compile(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", r.tests, "./e2e")
	cmd.Dir = r.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests: %w\n%s", err, out)
	}
	return nil
}

// overlay writes the files without the guard, and what go build -overlay needs.
func (r *runner) overlay(g guard) (string, error) {
	files, err := g.mutated(r.root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(r.folder, g.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(r.root, file)] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "overlay.json")
	return at, os.WriteFile(at, raw, 0o644)
}

// build builds the packages that a guard is taken out of, and runs nothing.
func (r *runner) build(ctx context.Context, g guard) (outcome, output string, err error) {
	overlay, err := r.overlay(g)
	if err != nil {
		return "", "", err
	}
	args := []string{"build", "-overlay", overlay}
	for _, e := range g.without {
		args = append(args, "./"+filepath.Dir(e.file))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	raw, err := cmd.CombinedOutput()
	if err != nil {
		return doesNotBuild, string(raw), nil
	}
	return builds, "", nil
}

// run runs the test of a guard without the guard. It returns the outcome and the test's output.
func (r *runner) run(ctx context.Context, g guard) (outcome, output string, err error) {
	overlay, err := r.overlay(g)
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout+time.Minute) // the tests stop themselves before
	defer cancel()
	args := []string{r.tests, "-test.run", g.test, "-test.v", "-test.parallel", "2", "-test.timeout", r.timeout.String()}
	dir := filepath.Join(r.root, "e2e")
	if g.pkg != "" {
		dir = r.root
		args = []string{"go", "test", "-vet=off", "-count", "1", "-v", "-timeout", r.timeout.String(), "-run", g.test, g.pkg}
	}
	if g.bounded {
		groups, leave, err := enterGroups()
		if err != nil {
			return "", "", err
		}
		defer leave()
		args = append([]string{"sh", "-c", groups + `exec "$@"`, "sh"}, args...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(r.root, "build/in-memory"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay, "STASIS_ATTACKED="+g.as)
	if g.long {
		cmd.Env = append(cmd.Env, "STASIS_LONG=1")
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	raw, err := cmd.CombinedOutput()
	output = string(raw)
	var exited *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exited):
		return "", output, err
	case strings.Contains(output, "go build: ") || strings.Contains(output, "[build failed]"):
		return doesNotBuild, output, nil
	case !strings.Contains(output, "=== RUN"):
		return "", output, fmt.Errorf("%s: no test matches %s", g.name, g.test)
	case err == nil:
		return stillPasses, output, nil
	case !strings.Contains(output, g.fails):
		return failedOtherwise, output, nil
	}
	return failedAsExpected, output, nil
}

// Bounds of a test whose attack nothing else stops.
const (
	boundMemory    = 4 << 30
	boundProcesses = 3000
)

// enterGroups makes control groups of version 1 and returns the shell commands with which a
// process enters them.
func enterGroups() (commands string, leave func(), err error) {
	var folders []string
	leave = func() {
		for _, folder := range folders {
			_ = os.Remove(folder) // its processes have ended
		}
	}
	for controller, limit := range map[string]struct {
		file  string
		value int
	}{"memory": {"memory.limit_in_bytes", boundMemory}, "pids": {"pids.max", boundProcesses}} {
		folder := filepath.Join("/sys/fs/cgroup", controller, fmt.Sprint("guards-", os.Getpid()))
		if err := os.Mkdir(folder, 0o755); err != nil {
			leave()
			return "", nil, fmt.Errorf("this test needs control groups of version 1: %w", err)
		}
		folders = append(folders, folder)
		if err := os.WriteFile(filepath.Join(folder, limit.file), []byte(fmt.Sprint(limit.value)), 0o644); err != nil {
			leave()
			return "", nil, err
		}
		commands += "echo $$ > " + filepath.Join(folder, "cgroup.procs") + " && "
	}
	return commands, leave, nil
}

// all runs the tests of guards of ./e2e against a daemon that has none of them, and prints for
// each whether its test's failure is in the output.
func (r *runner) all(ctx context.Context, guards []guard) error {
	one := guard{name: "together"}
	var tests, subtests []string
	for _, g := range guards {
		one.without = append(one.without, g.without...)
		name, sub, _ := strings.Cut(g.test, "/")
		sub, _, _ = strings.Cut(sub, "/") // all below it run
		if tests = append(tests, name); sub == "" {
			sub = ".*"
		}
		subtests = append(subtests, sub)
	}
	one.test = "(" + strings.Join(tests, "|") + ")/(" + strings.Join(subtests, "|") + ")"
	outcome, output, err := r.run(ctx, one)
	if err != nil || outcome == doesNotBuild {
		return fmt.Errorf("%s %w\n%s", outcome, err, output)
	}
	var wrong []string
	for _, g := range guards {
		outcome := failedAsExpected
		if !strings.Contains(output, g.fails) {
			outcome, wrong = notSeen, append(wrong, g.name)
		}
		fmt.Printf("%-24s %-16s %s\n", g.name, outcome, g.test)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s\nwithout these guards it is not as it should be: %s", output, strings.Join(wrong, ", "))
	}
	return nil
}
