package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a command until it ends or a signal cancels its context. After an error it exits
// with 1.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Scratch makes a temporary folder that the daemons' Chromes can enter: if this runs as root, each
// Chrome has its own user. The caller removes it.
func Scratch(prefix string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", prefix); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}
