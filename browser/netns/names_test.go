//go:build linux

package netns

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/egress"
)

// A resolver answers when the limits that it belongs to are in place, until it is stopped. The
// stop of an earlier one changes nothing.
func TestResolve(t *testing.T) {
	w := New("", firewall.Rules{}).NewNetwork()
	newResolver := func() *resolver.Resolver {
		r := resolver.New(resolver.Config{Admit: w.Admit, Refuse: w.Report, Now: time.Now,
			Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
			}})
		t.Cleanup(r.Close)
		return r
	}
	query, err := (&dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want bool) {
		t.Helper()
		if got := w.answer(t.Context(), query, 512) != nil; got != want {
			t.Errorf("%s: answers: %v", when, got)
		}
	}
	resolve := func() (stop func()) {
		t.Helper()
		port, stop, err := w.Resolve(newResolver())
		if err != nil || port != firewall.NamespaceResolver {
			t.Fatalf("port %d, %v", port, err)
		}
		return stop
	}
	limit := func() {
		t.Helper()
		if err := w.Limit(egress.Limits{Resolver: firewall.NamespaceResolver}, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect("at first", false)
	first := resolve()
	expect("before the limits", false)
	limit()
	expect("with the limits", true)
	limit()
	expect("with the same limits", true)
	second := resolve()
	expect("before other limits", false)
	limit()
	first()
	expect("with other limits", true)
	second()
	expect("after the end", false)
	limit()
	expect("with limits after the end", false)
}
