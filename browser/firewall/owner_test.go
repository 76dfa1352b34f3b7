package firewall

import (
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Two daemons cannot have a user in common, whatever their first ones are.
func TestOwn(t *testing.T) {
	first, err := own(Users{First: 900_000, Count: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []Users{{900_000, 100}, {900_000, 50}, {900_099, 1}, {899_950, 51}, {899_000, 5000}} {
		if l, err := own(other); !fault.Is(err, fault.Config) {
			t.Errorf("%+v: error %v", other, err)
			if err == nil {
				_ = l.Close() // the test has failed already
			}
		}
	}
	for _, other := range []Users{{900_100, 100}, {899_900, 100}} {
		l, err := own(other)
		if err != nil {
			t.Errorf("%+v: %v", other, err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := own(Users{First: 900_050, Count: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
