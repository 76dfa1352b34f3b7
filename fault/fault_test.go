package fault_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

func TestError(t *testing.T) {
	cause := errors.New("/secret/path")
	err := fault.Wrap(cause, fault.StoreFull, "a.b", "no room")
	if got := err.Error(); got != "a.b: store_full: no room: /secret/path" {
		t.Errorf("for the log: %q", got)
	}
	if got := fault.MessageOf(err); got != "no room" {
		t.Errorf("for the client: %q", got)
	}
	if !errors.Is(err, cause) || !fault.Is(err, fault.StoreFull) || fault.Is(err, fault.Timeout) {
		t.Error("the cause or the code is lost")
	}
	if err := fault.Wrap(nil, fault.Internal, "a.b", "m"); err != nil {
		t.Errorf("Wrap of a nil error: %v", err)
	}
	if got := fault.New(fault.InvalidField, "a", "field %q", "x").Message; got != `field "x"` {
		t.Errorf("%q", got)
	}
}

// The code of the outermost Error counts, through any wrapping. Other errors are
// internal, and their text is not shown to clients.
func TestCodeOf(t *testing.T) {
	inner := fault.New(fault.Timeout, "in", "inner")
	for name, test := range map[string]struct {
		err     error
		code    fault.Code
		message string
	}{
		"nil":     {nil, "", "internal error"},
		"plain":   {errors.New("secret"), fault.Internal, "internal error"},
		"context": {context.Canceled, fault.Internal, "internal error"},
		"wrapped": {fmt.Errorf("around: %w", inner), fault.Timeout, "inner"},
		"outer":   {fault.Wrap(inner, fault.SaveFailed, "out", ""), fault.SaveFailed, fault.SaveFailed.Text()},
		"joined":  {errors.Join(errors.New("x"), inner), fault.Timeout, "inner"},
	} {
		if got := fault.CodeOf(test.err); got != test.code {
			t.Errorf("%s: code %q, want %q", name, got, test.code)
		}
		if got := fault.MessageOf(test.err); got != test.message {
			t.Errorf("%s: message %q, want %q", name, got, test.message)
		}
	}
	if fault.Is(nil, "") {
		t.Error("a nil error has a code")
	}
}

// Codes are part of the API: each is unique, and each that a client can receive has its
// own text.
func TestCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		code, err := strconv.Unquote(lit.Value)
		if err != nil || seen[code] || code != strings.ToLower(code) || strings.ContainsAny(code, " -") {
			t.Errorf("%s: %q (%v)", spec.Names[0].Name, code, err)
		}
		seen[code] = true
		switch fault.Code(code) {
		case fault.Internal, fault.ChromeMissing, fault.SandboxFailed, fault.Config, fault.DataDirInUse:
			return true // clients never receive it with its own text
		}
		if fault.Code(code).Text() == fault.Internal.Text() {
			t.Errorf("%s has no text", code)
		}
		return true
	})
	if len(seen) < 30 {
		t.Errorf("found only %d codes", len(seen))
	}
}
