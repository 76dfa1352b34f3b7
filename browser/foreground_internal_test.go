package browser

import (
	"testing"
	"testing/synctest"
	"time"
)

// A new tab that another one has covered, or that has closed, is not watched any more.
func TestTabIsNoLongerFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &foreground{life: t.Context()}
		began := time.Now()
		f.settled("session", freshTab{navigated: make(chan struct{})}) // without a driver, it could not ask Chrome
		if took := time.Since(began); took != settle {
			t.Errorf("it was watched for %s", took)
		}
	})
}
