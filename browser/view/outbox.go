package view

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/budget"
)

// messageKind is what a message for the viewer contains.
type messageKind int

// The kinds of messages, in the order in which waiting messages are sent.
const (
	stateMessage   messageKind = iota // a [State]
	dialogMessage                     // a [Dialog]
	pickerMessage                     // a [Picker]
	chooserMessage                    // a [Chooser]
	copiedMessage                     // a [Copied]
	filesMessage                      // a [FilesChanged]
	noticeMessage                     // a [Notice]
	pictureMessage                    // a picture, the only binary message
)

// message is one message for the viewer.
type message struct {
	kind messageKind
	data []byte
}

// outbox holds the messages that wait for the viewer's connection. A new message replaces a
// waiting one of its kind. Only pictures wait together: a tab has at most maxUndrawn. So a
// viewer that does not read holds little memory, and delays nobody.
type outbox struct {
	account *budget.Account // counts the bytes
	wake    chan struct{}   // receives a value after a message was added

	mu      sync.Mutex
	waiting []message
}

func newOutbox(a *budget.Account) *outbox {
	return &outbox{account: a, wake: make(chan struct{}, 1)}
}

// put adds a message. It does not wait.
func (o *outbox) put(m message) {
	if m.kind != pictureMessage {
		o.drop(m.kind)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.account.Take(len(m.data)) // if the budget is exceeded, it ends the client that holds most
	o.waiting = append(o.waiting, m)
	select {
	case o.wake <- struct{}{}:
	default: // there is a value already
	}
}

// dropPictures removes the waiting pictures, because their tab is not shown any more.
func (o *outbox) dropPictures() { o.drop(pictureMessage) }

func (o *outbox) drop(kind messageKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := o.waiting[:0]
	for _, m := range o.waiting {
		if m.kind != kind {
			kept = append(kept, m)
			continue
		}
		o.account.Release(len(m.data))
	}
	clear(o.waiting[len(kept):])
	o.waiting = kept
}

// take waits for the next message and removes it; ok is false when ctx has ended. The caller
// calls wrote once the message was sent.
func (o *outbox) take(ctx context.Context) (m message, ok bool) {
	for {
		if m, ok = o.next(); ok {
			return m, true
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return message{}, false
		}
	}
}

// next removes the message to send next, if any.
func (o *outbox) next() (m message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := -1
	for i, m := range o.waiting {
		if first < 0 || m.kind < o.waiting[first].kind {
			first = i
		}
	}
	if first < 0 {
		return message{}, false
	}
	m = o.waiting[first]
	o.waiting = append(o.waiting[:first], o.waiting[first+1:]...)
	return m, true
}

// wrote releases the memory of a message that was sent.
func (o *outbox) wrote(m message) { o.account.Release(len(m.data)) }
