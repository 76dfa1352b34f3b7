package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
)

const (
	replayedHeader    = "Idempotent-Replayed"
	maxIdempotencyKey = 255
	// claimPatience is how long a repeat waits for the first request.
	claimPatience = 5 * time.Second
)

// Answer is a recorded first answer to a request with an Idempotency-Key.
type Answer struct {
	Scope     string // key ID and route, so that keys do not see each other's
	Key       string
	BodyHash  string
	Status    int // 0 while the first request runs
	Body      []byte
	CreatedAt time.Time
}

// Answers records first answers. A claim of a scope and key that is known gives
// what is recorded, and fresh false. An answer is dropped where a repeat of the
// request may go better.
type Answers interface {
	ClaimAnswer(ctx context.Context, a Answer) (known Answer, fresh bool, err error)
	FinishAnswer(ctx context.Context, a Answer) error
	DropAnswer(ctx context.Context, scope, key string) error
}

// making is a call that makes something, for [idempotency.once].
type making struct {
	// make does it. What it returns first is recorded as JSON and must hold no
	// secret; answer writes the answer and is called after the recording.
	make func() (kept any, answer func() error, err error)
	// replay answers a repeat from what was recorded.
	replay func(kept []byte) error
	// content reads what is left of a body that is too large to be hashed
	// beforehand, and identifies it; nil where the hash tells all.
	content func() (string, error)
}

// withContent is the record of a call with such a body.
type withContent struct {
	Content string          `json:"content"`
	Answer  json.RawMessage `json:"answer"`
}

// claims are the requests with an Idempotency-Key that run in this process.
type claims struct {
	mu      sync.Mutex
	running map[[2]string]chan struct{} // closed when it has its answer
}

// idempotency answers the repeats of requests with an Idempotency-Key.
type idempotency struct {
	answers Answers
	hashKey []byte // keys the hashes that bodies are known by
	claims  claims
	now     func() time.Time
	log     *slog.Logger
}

// once makes something once for each Idempotency-Key of a caller: a repeat
// with the same body gets the first answer, another body is
// idempotency_reused. Without the header it just makes it.
//
// The catalogue keeps the claim; which requests still run is known here, one
// daemon having the catalogue for itself. A claim without an answer that does
// not run here was left by a daemon that died, and is taken over.
func (i *idempotency) once(c *call, bodyHash string, m making) error {
	key, err := idempotencyKey(c)
	if err != nil {
		return err
	}
	if key == "" {
		_, answer, err := m.make()
		if err != nil {
			return err
		}
		return answer()
	}
	scope := c.caller.KeyID + " " + c.Request().Method + " " + c.Path()
	release, err := i.claims.take(c.Request().Context(), [2]string{scope, key})
	if err != nil {
		return err
	}
	defer release()

	// What became of the request must be recorded even if its client has left.
	ctx := context.WithoutCancel(c.Request().Context())
	claim := Answer{Scope: scope, Key: key, BodyHash: bodyHash, CreatedAt: i.now()}
	known, fresh, err := i.answers.ClaimAnswer(ctx, claim)
	switch {
	case err != nil:
		return err
	case !fresh && known.BodyHash != bodyHash:
		return fault.New(fault.IdempotencyReused, "api.once", "")
	case !fresh && known.Status != 0:
		if m.content != nil {
			if known.Body, err = sameContent(known.Body, m); err != nil {
				return err
			}
		}
		c.Response().Header().Set(replayedHeader, "true")
		return replay(known, m)
	}
	kept, answer, err := m.make()
	if err := i.record(ctx, claim, m, kept, err); err != nil {
		i.log.Error("answer not recorded", "request_id", c.Response().Header().Get(requestIDHeader), "error", err)
	}
	if err != nil {
		return err
	}
	return answer()
}

// record keeps a first answer, or forgets the claim where trying again may go
// better.
func (i *idempotency) record(ctx context.Context, a Answer, m making, kept any, failure error) (err error) {
	a.Status = 200
	if failure != nil {
		code := fault.CodeOf(failure)
		if a.Status = statusOf(code); a.Status >= 500 || a.Status == 429 {
			return i.answers.DropAnswer(ctx, a.Scope, a.Key)
		}
		kept = errorAnswer{Code: code, Message: fault.MessageOf(failure)}
	}
	if a.Body, err = json.Marshal(kept); err != nil {
		return err
	}
	if m.content != nil {
		content, err := m.content()
		if err != nil { // it broke off: nobody can tell a repeat from another
			return i.answers.DropAnswer(ctx, a.Scope, a.Key)
		}
		if a.Body, err = json.Marshal(withContent{content, a.Body}); err != nil {
			return err
		}
	}
	return i.answers.FinishAnswer(ctx, a)
}

// hashOf identifies a decoded body by a keyed hash: the same for another order of names, for
// other white space, and for null instead of absence.
func (i *idempotency) hashOf(body any) string {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // wire structs always marshal
	}
	mac := i.newHash()
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// newHash is a hash that nobody can compute who lacks the key.
func (i *idempotency) newHash() hash.Hash { return hmac.New(sha256.New, i.hashKey) }

// sameContent takes the answer out of a record if the body is the first one's.
func sameContent(kept []byte, m making) ([]byte, error) {
	var first withContent
	if err := json.Unmarshal(kept, &first); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "api.replay", "")
	}
	content, err := m.content()
	if err == nil && content != first.Content {
		err = fault.New(fault.IdempotencyReused, "api.once", "")
	}
	return first.Answer, err
}

// replay answers from a record.
func replay(a Answer, m making) error {
	if a.Status < 400 {
		return m.replay(a.Body)
	}
	var first errorAnswer
	if err := json.Unmarshal(a.Body, &first); err != nil {
		return fault.Wrap(err, fault.Internal, "api.replay", "")
	}
	return fault.New(first.Code, "api.replay", "%s", first.Message)
}

// take waits until no other request holds the key, for a while, and holds it
// until release.
func (k *claims) take(ctx context.Context, key [2]string) (release func(), err error) {
	patience, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	for {
		k.mu.Lock()
		running, taken := k.running[key]
		if !taken {
			done := make(chan struct{})
			if k.running == nil {
				k.running = map[[2]string]chan struct{}{}
			}
			k.running[key] = done
			k.mu.Unlock()
			return func() { k.release(key, done) }, nil
		}
		k.mu.Unlock()
		select {
		case <-running:
		case <-patience.Done():
			return nil, fault.New(fault.RequestInProgress, "api.once", "")
		}
	}
}

func (k *claims) release(key [2]string, done chan struct{}) {
	k.mu.Lock()
	delete(k.running, key)
	k.mu.Unlock()
	close(done)
}

func idempotencyKey(c *call) (string, error) {
	key := c.Request().Header.Get("Idempotency-Key")
	if len(key) > maxIdempotencyKey {
		return "", fault.New(fault.InvalidRequest, "api.once", "Idempotency-Key: must be at most %d characters long", maxIdempotencyKey)
	}
	for _, r := range key {
		if r < ' ' || r > '~' {
			return "", fault.New(fault.InvalidRequest, "api.once", "Idempotency-Key: must be printable ASCII")
		}
	}
	return key, nil
}
