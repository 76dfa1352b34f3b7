package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
)

const (
	replayedHeader    = "Idempotent-Replayed"
	maxIdempotencyKey = 255
	// claimPatience is how long a repeat waits for the first request to finish.
	claimPatience = 5 * time.Second
	// otherPause is the time between two looks at a request that runs on another node.
	otherPause = 250 * time.Millisecond
)

// Answer is a recorded first answer to a request with an Idempotency-Key.
type Answer struct {
	Scope     string // key ID and route: keys do not see each other's answers
	Key       string
	BodyHash  string
	Status    int    // 0 while the first request runs
	Body      []byte // with Status 0: what the first request has chosen for what it makes, or nil
	CreatedAt time.Time
	// Elsewhere says with Status 0 that another node, which lives, has made the claim.
	Elsewhere bool
}

// Answers stores first answers. For a scope and key that are known, ClaimAnswer returns the
// stored answer and fresh false. DropAnswer is called if a repeat of the request may
// succeed.
type Answers interface {
	ClaimAnswer(ctx context.Context, a Answer) (known Answer, fresh bool, err error)
	FinishAnswer(ctx context.Context, a Answer) error
	DropAnswer(ctx context.Context, scope, key string) error
}

// creation is a call that creates something, for [idempotency.once].
type creation struct {
	// make does the work. kept is stored as JSON and must contain no secret. answer writes
	// the answer; it is called after kept is stored.
	make func() (kept any, answer func() error, err error)
	// chosen points to what is chosen for what make creates, such as its ID. It is stored with
	// the claim, before make runs. If a repeat runs make again, it has the choice of the first
	// request, which may have created that on another node. nil: nothing is chosen.
	chosen any
	// replay answers a repeat with what was stored.
	replay func(kept []byte) error
	// content reads the rest of a body that is too large to be hashed beforehand and
	// returns its hash; nil if the hash of the request covers everything.
	content func() (string, error)
}

// contentRecord is what is stored for a call with content.
type contentRecord struct {
	Content string          `json:"content"`
	Answer  json.RawMessage `json:"answer"`
}

// claims are the requests with an Idempotency-Key that run in this process.
type claims struct {
	mu      sync.Mutex
	running map[[2]string]chan struct{} // closed when the request has its answer
}

// idempotency answers the repeats of requests with an Idempotency-Key.
type idempotency struct {
	answers Answers
	hashKey []byte // key of the hashes that identify bodies
	claims  claims
	now     func() time.Time
	log     *slog.Logger
}

// once runs m once for each Idempotency-Key of a caller. A repeat with the same body gets
// the first answer; another body is idempotency_reused. Without the header, once just runs
// m.
//
// The catalogue stores the claim. Which requests are still running on this node is known only
// here. A claim without an answer that is not running here was left by a daemon that died, or by a
// request to another node whose outcome is not known, or it runs on another node. If something was
// chosen, once takes the claim over: what it makes again has the ID of the first, so that the
// catalogue admits one. Otherwise it waits for the other node, or refuses the repeat.
func (i *idempotency) once(c *call, bodyHash string, m creation) error {
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

	// The outcome must be stored even if the client has disconnected.
	ctx := context.WithoutCancel(c.Request().Context())
	claim := Answer{Scope: scope, Key: key, BodyHash: bodyHash, CreatedAt: i.now()}
	if m.chosen != nil {
		if claim.Body, err = json.Marshal(m.chosen); err != nil {
			return err
		}
	}
	known, fresh, err := i.claim(c.Request().Context(), claim)
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
	others := false // the claim may be that of a request which runs on another node
	if !fresh && m.chosen != nil && len(known.Body) > 0 {
		others = true
		if err := json.Unmarshal(known.Body, m.chosen); err != nil {
			return fault.Wrap(err, fault.Internal, "api.once", "")
		}
	}
	kept, answer, err := m.make()
	if others {
		kept, answer, err = awaitOther(c.Request().Context(), m, kept, answer, err)
	}
	if forward.Unanswered(err) || others && mayRepeat(err) {
		return err // the claim stays, with what was chosen
	}
	if err := i.record(ctx, claim, m, kept, err); err != nil {
		i.log.Error("could not record an answer; a repeat with the same Idempotency-Key will run again", "request_id", c.Response().Header().Get(requestIDHeader), "error", err)
	}
	if err != nil {
		return err
	}
	return answer()
}

// otherAge is the age at which a claim of another node is taken over: the node lives, but could not
// store the answer. No request takes so long.
const otherAge = time.Hour

// claim claims a key. While another node has it and nothing was chosen, claim waits, at most for
// claimPatience; then the error is request_in_progress.
func (i *idempotency) claim(ctx context.Context, a Answer) (known Answer, fresh bool, err error) {
	patience, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	for {
		// The claim must be known even if the client has disconnected.
		known, fresh, err = i.answers.ClaimAnswer(context.WithoutCancel(ctx), a)
		runs := err == nil && !fresh && known.Status == 0 && known.Elsewhere && len(known.Body) == 0
		if !runs || known.BodyHash != a.BodyHash || i.now().Sub(known.CreatedAt) >= otherAge {
			return known, fresh, err
		}
		select {
		case <-time.After(otherPause):
		case <-patience.Done():
			return known, false, fault.New(fault.RequestInProgress, "api.once", "")
		}
	}
}

// awaitOther runs make again while a request on another node makes the same, at most for
// claimPatience. It returns what make has returned last.
func awaitOther(ctx context.Context, m creation, kept any, answer func() error, err error) (any, func() error, error) {
	patience, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	for fault.Is(err, fault.RequestInProgress) {
		select {
		case <-time.After(otherPause):
			kept, answer, err = m.make()
		case <-patience.Done():
			return kept, answer, err
		}
	}
	return kept, answer, err
}

// record stores a first answer. If a retry may succeed, it deletes the claim instead.
func (i *idempotency) record(ctx context.Context, a Answer, m creation, kept any, failure error) (err error) {
	a.Status = 200
	if failure != nil {
		if mayRepeat(failure) {
			return i.answers.DropAnswer(ctx, a.Scope, a.Key)
		}
		code := fault.CodeOf(failure)
		a.Status = statusOf(code)
		kept = errorAnswer{Code: code, Message: fault.MessageOf(failure)}
	}
	if a.Body, err = json.Marshal(kept); err != nil {
		return err
	}
	if m.content != nil {
		content, err := m.content()
		if err != nil { // the body broke off: a repeat cannot be recognised
			return i.answers.DropAnswer(ctx, a.Scope, a.Key)
		}
		if a.Body, err = json.Marshal(contentRecord{content, a.Body}); err != nil {
			return err
		}
	}
	return i.answers.FinishAnswer(ctx, a)
}

// mayRepeat reports whether a repeat of a request that has failed may succeed.
func mayRepeat(failure error) bool {
	if failure == nil {
		return false
	}
	code := fault.CodeOf(failure)
	status := statusOf(code)
	return status >= 500 || status == http.StatusTooManyRequests || code == fault.RequestInProgress
}

// hashOf identifies a decoded body by a keyed hash. The order of names, white space, and
// null instead of absence do not change it.
func (i *idempotency) hashOf(body any) string {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // wire structs always marshal
	}
	mac := i.newHash()
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// newHash returns a hash that cannot be computed without the key.
func (i *idempotency) newHash() hash.Hash { return hmac.New(sha256.New, i.hashKey) }

// sameContent returns the stored answer if the body is the same as the first one.
func sameContent(kept []byte, m creation) ([]byte, error) {
	var first contentRecord
	if err := json.Unmarshal(kept, &first); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "api.replay", "")
	}
	content, err := m.content()
	if err == nil && content != first.Content {
		err = fault.New(fault.IdempotencyReused, "api.once", "")
	}
	return first.Answer, err
}

// replay answers with what was stored.
func replay(a Answer, m creation) error {
	if a.Status < 400 {
		return m.replay(a.Body)
	}
	var first errorAnswer
	if err := json.Unmarshal(a.Body, &first); err != nil {
		return fault.Wrap(err, fault.Internal, "api.replay", "")
	}
	return fault.New(first.Code, "api.replay", "%s", first.Message)
}

// take waits until no other request holds the key, at most claimPatience. Then it holds the
// key until release is called.
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
