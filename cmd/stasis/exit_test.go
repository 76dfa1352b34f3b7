package main

import (
	"errors"
	"testing"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/fault"
)

// Scripts depend on the exit codes, so no code may change its meaning.
func TestExitCodes(t *testing.T) {
	failed := func(code fault.Code) error { return fault.New(code, "test", "on purpose") }
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"success", nil, 0},
		{"an error without a code", errors.New("on purpose"), 1},
		{"a fault without its own exit code", failed(fault.Internal), 1},
		{"settings", failed(fault.Config), 2},
		{"no identity", failed(fault.IdentityMissing), 2},
		{"no Chrome", failed(fault.ChromeMissing), 3},
		{"no sandbox", failed(fault.SandboxFailed), 4},
		{"data directory in use", failed(fault.DataDirInUse), 5},
		{"store broken", failed(fault.StoreFailed), 6},
		{"store full", failed(fault.StoreFull), 6},
		{"not ready", exitError{exitNotReady, "on purpose"}, 7},
		{"damaged", exitError{exitDamaged, "on purpose"}, 8},
		{"interrupted", exitError{exitInterrupted, "on purpose"}, 130},
		{"a daemon's refusal", &client.Error{Code: "snapshot_in_use", Message: "on purpose"}, 1},
		{"a fault and what followed from it", errors.Join(failed(fault.DataDirInUse), errors.New("then this")), 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := report(tt.err); got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
}

// A reason that the message has already is not printed again as its cause.
func TestNewCause(t *testing.T) {
	below := errors.New("exit status 1")
	reason := errors.Join(fault.Wrap(below, fault.Unsupported, "test", "pasta ended"))
	for _, tt := range []struct {
		name, message string
		cause, want   error
	}{
		{"the message ends with the reason", "--egress required: pasta ended", reason, below},
		{"nothing below the reason", "--egress required: pasta ended", fault.New(fault.Unsupported, "test", "pasta ended"), nil},
		{"another message", "--egress required", reason, reason},
		{"a cause without a message", "--egress required", below, below},
		{"no cause", "--egress required", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newCause(&fault.Error{Code: fault.Config, Op: "test", Message: tt.message, Err: tt.cause}); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
