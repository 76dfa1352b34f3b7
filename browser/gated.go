package browser

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/gate"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// A spare of full Chrome runs on an empty profile whose files wait at gates. The files of
// an environment are moved into that profile, and the gates are opened: then Chrome has
// the environment without the time that it takes to open a profile and a window. It also
// reads the session file only then, so it restores the tabs with their back/forward lists
// into the window that is open. Only the settings are those of the empty profile, which
// Chrome has read already (see [profile.Carry]). An environment whose settings pages could
// notice is opened as another profile.

// learnSettings starts Chrome once to learn the settings that it writes into an empty
// profile. It does nothing if they are known, or if a try has just failed.
func (s *Starter) learnSettings(ctx context.Context) {
	s.learning.Lock()
	defer s.learning.Unlock()
	if s.settings.Load() != nil || s.noGates.Load() != nil || s.Now().Before(s.learnAfter) {
		return
	}
	settings, err := s.startSettings(ctx)
	if err == nil {
		s.settings.Store(&settings)
		return
	}
	s.learnAfter = s.Now().Add(learnPause) // a full disk or a busy machine may be the cause
}

// learnPause is how long after a failed try to learn the settings no spare tries again.
const learnPause = time.Minute

func (s *Starter) startSettings(ctx context.Context) (settings []byte, err error) {
	dir, err := s.Launcher.NewScratchDir()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	p, err := s.Spare(ctx, dir, Options{Background: true}) // without gates
	if err != nil {
		return nil, err
	}
	if _, err := p.b.Close(ctx); err != nil {
		return nil, err
	}
	return profile.StartSettings(dir.Profile())
}

// gates returns the settings with which a Chrome with these options starts if it is to
// have gates; else nil.
func (s *Starter) gates(o Options) *[]byte {
	if o.Engine == EngineShell || !o.Gates {
		return nil
	}
	return s.settings.Load()
}

// disableGates records why no Chrome can wait at gates, and that later spares have none.
func (s *Starter) disableGates(err error) {
	s.noGates.Store(&err)
	s.settings.Store(nil)
}

// whyNoGates returns why a Chrome that was to have gates has none; "" if the settings are
// only not known yet.
func (s *Starter) whyNoGates(o Options) string {
	err := s.noGates.Load()
	if !o.Gates || err == nil {
		return ""
	}
	return "no Chrome can wait for the files of an environment here: " + fault.MessageOf(*err)
}

// prepareGated makes the empty profile of a gated spare with these settings, and the files
// that it gets if no environment enters it.
func prepareGated(ctx context.Context, dir *Dir, prep profile.Prepare, settings []byte) (unknown []string, err error) {
	prep.Empty = false
	folder := filepath.Join(dir.Profile(), profile.Spare)
	err = fault.Wrap(os.RemoveAll(folder), fault.StoreFailed, "browser.gated", "an earlier profile could not be removed")
	if err == nil {
		err = profile.WriteStartSettings(dir.Profile(), settings)
	}
	if err == nil {
		unknown, err = prep.Run(ctx, dir.Profile())
	}
	if err == nil {
		err = gate.Chrome().Create(folder)
	}
	waiting := dir.Waiting()
	if err == nil {
		err = gate.Chrome().Fill(filepath.Join(waiting.Profile(), profile.Default))
	}
	if err == nil {
		err = waiting.Chown()
	}
	return unknown, err
}

// openEmpty opens the gates of a gated spare for an empty environment.
func (p *Spare) openEmpty() error {
	if !p.gated {
		return nil
	}
	return p.enter(filepath.Join(p.b.dir.Waiting().Profile(), profile.Default))
}

// enter moves a waiting profile into the spare's and opens the gates.
func (p *Spare) enter(waiting string) error {
	p.gated = false
	b := p.b
	rest, err := gate.Chrome().Open(filepath.Join(b.dir.Profile(), profile.Spare), waiting)
	b.openRest = sync.OnceFunc(func() { _ = rest() }) // it fails only if Chrome has ended
	if err != nil {
		b.openRest()
		if errors.Is(err, gate.ErrConflict) {
			p.starter.disableGates(err)
		}
		return err
	}
	b.background.Go(func() {
		b.awaitFirstPage()
		b.openRest()
	})
	return b.process.Release()
}

// enterGates puts the prepared environment into the spare's profile. It returns how many
// tabs Chrome will restore.
func (p *Spare) enterGates() (tabs int, err error) {
	dir := p.b.dir
	waiting := filepath.Join(dir.Profile(), profile.Default)
	tabs, err = profile.PlaceSession(dir.Profile())
	if err == nil {
		err = gate.Chrome().Fill(waiting)
	}
	if err == nil {
		err = dir.ChownProfile(profile.Default)
	}
	if err == nil {
		err = p.enter(waiting)
	}
	p.b.entered = err == nil
	return tabs, err
}

// needsProfile returns why Chrome must open an environment as another profile, beside that of
// the spare; "" if it need not, or if the spare was to have no gates. found is the
// inventory of the environment's settings.
func (p *Spare) needsProfile(doc state.Document, o Options, found state.Inventory) (string, error) {
	if !p.gated {
		return p.starter.whyNoGates(p.startOptions), nil
	}
	const settings = "Chrome reads settings only when it opens a profile: "
	switch {
	case len(doc.Extensions)+len(o.Extensions) > 0:
		return "Chrome loads extensions only when it opens a profile", nil
	case found.Has(state.ComponentContentSettings):
		return settings + "the environment has settings of sites", nil
	case found.Has(state.ComponentZoom):
		return settings + "the environment has zoom levels", nil
	case !p.fits(o):
		return settings + "this session has other languages, permissions or another proxy than the Chrome that was ready", nil
	case restore.SourceOf(doc, o.RestoreTabs) == restore.SourceUnread:
		return "only session files say which tab was in front", nil
	case state.Newer(doc.Chrome.Version, p.b.version):
		return "a newer Chrome wrote the profile", nil
	}
	if name := gate.Chrome().TooLarge(filepath.Join(p.b.dir.Profile(), profile.Default)); name != "" {
		return "its file " + name + " is larger than a pipe can hold", nil
	}
	names, err := profile.Noticeable(p.b.dir.Profile())
	if len(names) == 0 {
		return "", err
	}
	return settings + "the environment has " + strings.Join(names[:min(len(names), maxNamed)], ", "), err
}

// maxNamed bounds how many settings a report names.
const maxNamed = 5

// SecondProfileReason returns why Chrome opened the environment as another profile instead of
// letting it enter by gates; "" if it entered, or if Chrome was to have no gates.
func (b *Browser) SecondProfileReason() string { return b.secondProfileReason }

// markMerged adds to the line of the settings that Chrome does not run with them.
func markMerged(lines []state.Component) []state.Component {
	for i, line := range lines {
		if line.Name == state.ComponentPreferences && line.Reason.Code == "" {
			lines[i].Reason = report.MergedAtSaves.Reason()
		}
	}
	return lines
}
