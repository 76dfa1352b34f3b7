package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := work(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "guards:", err)
		os.Exit(1)
	}
}

// work runs the tests of the guards that the flags select, and prints a line for each.
func work(ctx context.Context) error {
	only := flag.String("only", "", "a regular expression for the names of guards")
	list := flag.Bool("list", false, "print the guards and their tests, and run nothing")
	build := flag.Bool("build", false, "build the packages without their guards, and run nothing")
	together := flag.Bool("together", false, "take out all selected guards at once: quicker, but a test may fail for another's reason")
	tests := flag.String("tests", "", "the binary of the tests, if it is built already (go test -c -o FILE ./e2e)")
	logs := flag.String("logs", "", "a folder for the outputs of the tests")
	timeout := flag.Duration("timeout", 30*time.Minute, "for each test, which also builds its daemon")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	var guards []guard
	for _, g := range all() {
		if chosen.MatchString(g.name) {
			guards = append(guards, g)
		}
	}
	if *list {
		for _, g := range guards {
			fmt.Printf("%-24s %s\n%-24s %s %s\n", g.name, g.keeps, "", g.test, g.pkg)
		}
		return nil
	}
	at, err := root()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "guards-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // only copies
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	r := &runner{root: at, folder: folder, timeout: *timeout, tests: *tests}
	run, expected := r.run, failedAsExpected
	if *build {
		run, expected = r.build, builds
	} else if r.tests == "" {
		r.tests = filepath.Join(folder, "e2e.test")
		if err := r.compile(ctx); err != nil {
			return err
		}
	}
	if *together {
		return r.all(ctx, guards)
	}
	var wrong []string
	for _, g := range guards {
		began := time.Now()
		outcome, output, err := run(ctx, g)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if *logs != "" {
			if err := os.MkdirAll(*logs, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(*logs, g.name+".log"), []byte(output), 0o644); err != nil {
				return err
			}
		}
		if err != nil {
			outcome = err.Error()
		}
		fmt.Printf("%-24s %-16s %4.0f s  %s\n", g.name, outcome, time.Since(began).Seconds(), g.test)
		if outcome != expected {
			wrong = append(wrong, g.name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("without these guards it is not as it should be: %s", strings.Join(wrong, ", "))
	}
	return nil
}
