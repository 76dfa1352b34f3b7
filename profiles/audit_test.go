package profiles_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// auditLog returns n entries, each with all fields.
func auditLog(n int) []profiles.AuditEntry {
	var all []profiles.AuditEntry
	var last profiles.AuditEntry
	for range n {
		e := profiles.AuditEntry{At: time.Date(2026, 11, 27, 6, 0, 0, 120_000_000, time.UTC), By: "key", KeyID: "k", KeyUser: "ada", Address: "192.0.2.1",
			Call: "createSession", UserID: "bob", SessionID: "s", SnapshotID: "n", Object: "o", Detail: "d", Outcome: profiles.AuditOK, Code: "c", Count: 1}
		e.Follow(last)
		all, last = append(all, e), e
	}
	return all
}

func check(t *testing.T, log []profiles.AuditEntry) (profiles.AuditChain, error) {
	t.Helper()
	var chain profiles.AuditChain
	for _, e := range log {
		if err := chain.Add(e); err != nil {
			return chain, err
		}
	}
	return chain, chain.CheckBegin()
}

// The encoding is that of docs/decisions/audit.md: this hash was computed by another
// program, from that page.
func TestAuditHash(t *testing.T) {
	e := auditLog(1)[0]
	e.UserID = "Зоя\n"
	const want = "0cc61fe7af99c32dd01ebeae49d0ef49c9c29e089c5cb66282bf07e0c77514c5"
	if got := e.Sum().String(); got != want {
		t.Errorf("the hash is %s", got)
	}
	e.At = e.At.In(time.FixedZone("", 3600)).Add(999 * time.Microsecond)
	if got := e.Sum().String(); got != want {
		t.Errorf("in another zone, with microseconds, the hash is %s", got)
	}
}

// A text that moves from one field to the next changes the hash.
func TestAuditHashBounds(t *testing.T) {
	a, b := auditLog(1)[0], auditLog(1)[0]
	a.Object, a.Detail, b.Object, b.Detail = "1:a,1:b", "", "1:a", "1:b"
	if a.Sum() == b.Sum() {
		t.Error("two entries have one hash")
	}
}

// A change of any field is found, also in an entry whose hash was made anew.
func TestAuditTampered(t *testing.T) {
	if _, err := check(t, auditLog(5)); err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[profiles.AuditEntry]()
	for i := range fields.NumField() {
		for _, rehashed := range []bool{false, true} {
			name := fields.Field(i).Name
			if rehashed && name == "Hash" {
				continue
			}
			log := auditLog(5)
			switch f := reflect.ValueOf(&log[2]).Elem().Field(i); v := f.Interface().(type) {
			case int64:
				f.SetInt(v + 1)
			case time.Time:
				f.Set(reflect.ValueOf(v.Add(time.Millisecond)))
			case profiles.AuditHash:
				v[0]++
				f.Set(reflect.ValueOf(v))
			default:
				f.SetString(f.String() + "x")
			}
			if rehashed {
				log[2].Hash = log[2].Sum()
			}
			_, err := check(t, log)
			var broken *profiles.BrokenAudit
			if found := errors.As(err, &broken) && (broken.Number == 3 || rehashed && broken.Number == 4); !found {
				t.Errorf("%s changed, hash made anew %v: %v", name, rehashed, err)
			}
		}
	}
}

func TestAuditRemoved(t *testing.T) {
	for name, x := range map[string]struct {
		log  []profiles.AuditEntry
		want int64
	}{
		"the first":          {auditLog(5)[1:], 1},
		"one in the middle":  {slices.Delete(auditLog(5), 2, 3), 3},
		"one twice":          {slices.Insert(auditLog(5), 2, auditLog(5)[1]), 2},
		"two in wrong order": {[]profiles.AuditEntry{auditLog(2)[1], auditLog(2)[0]}, 1},
	} {
		_, err := check(t, x.log)
		var broken *profiles.BrokenAudit
		if !errors.As(err, &broken) || broken.Number != x.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nothing in the log shows that its end is missing.
	if chain, err := check(t, auditLog(5)[:4]); err != nil || chain.Last.Number != 4 {
		t.Errorf("without its end: %+v, %v", chain.Last, err)
	}
	// A first entry that names one before it was entry 2 once.
	forged := profiles.AuditEntry{Call: "a"}
	forged.Number, forged.Previous = 1, auditLog(1)[0].Hash
	forged.Hash = forged.Sum()
	if _, err := check(t, []profiles.AuditEntry{forged}); err == nil {
		t.Error("a first entry may name another")
	}
}

// A log may begin later if one of its entries says so, for exactly that entry.
func TestAuditPruned(t *testing.T) {
	pruned := func(object, detail, by string) error {
		log := auditLog(4)
		e := profiles.AuditEntry{By: by, Call: profiles.AuditPruned, Object: object, Detail: detail}
		e.Follow(log[3])
		_, err := check(t, append(log[2:], e))
		return err
	}
	hash := auditLog(2)[1].Hash.String()
	if err := pruned("2", hash, "daemon"); err != nil {
		t.Error(err)
	}
	for _, err := range []error{pruned("1", hash, "daemon"), pruned("2", auditLog(1)[0].Hash.String(), "daemon"), pruned("2", hash, "key")} {
		if err == nil {
			t.Error("entries are missing, and that was not found")
		}
	}
}

// An entry that was written as JSON has the same hash when it is read.
func TestAuditJSON(t *testing.T) {
	e := auditLog(1)[0]
	e.UserID, e.Detail = "<&>\u2028\x00é", strconv.Quote("\n")
	e.Hash = e.Sum()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var read profiles.AuditEntry
	if err := json.Unmarshal(text, &read); err != nil || read.Sum() != e.Hash || read.Hash != e.Hash {
		t.Errorf("%+v, %v", read, err)
	}
	for _, wrong := range []string{`{"hash":"00"}`, `{"hash":"` + e.Hash.String()[1:] + `x"}`} {
		if err := json.Unmarshal([]byte(wrong), &read); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}
