package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// machine describes the machine and the versions of the programs.
func machine(ctx context.Context, s settings) ([][]string, error) {
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, err
	}
	rows := [][]string{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"cores", fmt.Sprint(runtime.NumCPU())},
		{"memory", fmt.Sprintf("%d MB", kilobytes(string(memory), "MemTotal:")>>10)},
		{"kernel", strings.TrimSpace(string(kernel))},
	}
	for _, program := range [][]string{
		{s.chrome, "--version", "--no-sandbox"}, {s.shell, "--version", "--no-sandbox"}, {s.binary, "--version"}, {"node", "--version"},
	} {
		out, err := exec.CommandContext(ctx, program[0], program[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program[0], err)
		}
		first, _, _ := strings.Cut(string(out), "\n")
		rows = append(rows, []string{filepath.Base(program[0]), strings.TrimSpace(first)})
	}
	for _, name := range []string{"puppeteer-core", "playwright-core"} {
		raw, err := os.ReadFile(filepath.Join(s.clients, "node_modules", name, "package.json"))
		if err != nil {
			return nil, err
		}
		var about struct{ Version string }
		if err := json.Unmarshal(raw, &about); err != nil {
			return nil, err
		}
		rows = append(rows, []string{name, about.Version})
	}
	return append(rows, []string{"Go", runtime.Version()}), nil
}
