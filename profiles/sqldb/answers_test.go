package sqldb_test

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// A request that began before its node lost its lease may end after the node has joined again. It
// changes nothing of the repeat that another node has begun meanwhile.
func TestLateAnswer(t *testing.T) {
	url := postgresURL(t)
	a, b := openNode(t, url), openNode(t, url)
	first := join(t, a, "a")
	join(t, b, "b")
	claim := profiles.Answer{Scope: "k", Key: "1", CreatedAt: time.Unix(2, 0)}
	if _, fresh, err := a.Answers.ClaimAnswer(t.Context(), claim); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	takeOver(t, b, first)
	join(t, a, "a")

	repeat := claim
	repeat.CreatedAt = time.Unix(20, 0)
	if _, fresh, err := b.Answers.ClaimAnswer(t.Context(), repeat); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	late := claim
	late.Status, late.Body = 200, []byte(`"late"`)
	if err := a.Answers.FinishAnswer(t.Context(), late); !fault.Is(err, fault.NotFound) {
		t.Errorf("the repeat got the answer of the first request: %v", err)
	}
	if err := a.Answers.DropAnswer(t.Context(), claim.Scope, claim.Key); err != nil {
		t.Error(err)
	}
	if known, fresh, err := b.Answers.ClaimAnswer(t.Context(), repeat); err != nil || fresh || known.Status != 0 {
		t.Errorf("the claim of the repeat: %+v, %t, %v", known, fresh, err)
	}
	repeat.Status, repeat.Body = 200, []byte(`"repeat"`)
	if err := b.Answers.FinishAnswer(t.Context(), repeat); err != nil {
		t.Fatal(err)
	}
	if err := a.Answers.DropAnswer(t.Context(), claim.Scope, claim.Key); err != nil {
		t.Error(err)
	}
	if known, fresh, err := a.Answers.ClaimAnswer(t.Context(), claim); err != nil || fresh || string(known.Body) != `"repeat"` {
		t.Errorf("the answer: %+v, %t, %v", known, fresh, err)
	}
}

// A repeat of a create makes the session that the first request has chosen. If the first one is
// refused afterwards, the choice stays, so that no further repeat makes another session. A claim
// that its node has left for an hour is finished by another one.
func TestAnswerTakenOver(t *testing.T) {
	url := postgresURL(t)
	a, b := openNode(t, url), openNode(t, url)
	join(t, a, "a")
	join(t, b, "b")
	chosen := profiles.Answer{Scope: "k", Key: "1", Body: []byte(`{"session_id":"s"}`), CreatedAt: time.Unix(2, 0)}
	other := profiles.Answer{Scope: "k", Key: "2", CreatedAt: time.Unix(2, 0)}
	for _, claim := range []profiles.Answer{chosen, other} {
		if _, fresh, err := a.Answers.ClaimAnswer(t.Context(), claim); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
	}
	repeat := chosen
	repeat.Body, repeat.CreatedAt = []byte(`{"session_id":"another"}`), time.Unix(3, 0)
	if known, fresh, err := b.Answers.ClaimAnswer(t.Context(), repeat); err != nil || fresh || string(known.Body) != string(chosen.Body) {
		t.Fatalf("%+v, %t, %v", known, fresh, err)
	}
	if err := a.Answers.DropAnswer(t.Context(), "k", "1"); err != nil {
		t.Fatal(err)
	}
	repeat.Status, repeat.Body = 200, []byte(`"made"`)
	if err := b.Answers.FinishAnswer(t.Context(), repeat); err != nil {
		t.Error(err)
	}
	if known, fresh, err := a.Answers.ClaimAnswer(t.Context(), chosen); err != nil || fresh || string(known.Body) != `"made"` {
		t.Errorf("the answer: %+v, %t, %v", known, fresh, err)
	}

	other.Status, other.Body, other.CreatedAt = 200, []byte("{}"), time.Unix(2, 0).Add(time.Hour)
	if err := b.Answers.FinishAnswer(t.Context(), other); err != nil {
		t.Error(err)
	}
}
