package browser

import (
	"context"
	"strconv"

	"github.com/chromedp/cdproto/emulation"

	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/state"
)

// face is what pages of the shell are told that their browser is: the full
// Chrome of this daemon, so that a site sees one browser whatever engine runs.
// The shell's own words name it HeadlessChrome. The zero face is full Chrome's
// own and changes nothing.
type face struct{ chrome launch.Version }

// face is that of a browser that is to start.
func (s *Starter) face(ctx context.Context, dir *Dir, o Options) (face, error) {
	if o.Engine != EngineShell {
		return face{}, nil
	}
	v, err := s.Launcher.Version(ctx, dir, false)
	return face{v}, err
}

func (f face) none() bool { return f.chrome.Full == "" }

// userAgent is full Chrome's on Linux, whose parts are fixed but for the major
// version (User-Agent reduction).
func (f face) userAgent() string {
	return "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/" +
		strconv.Itoa(f.chrome.Major) + ".0.0.0 Safari/537.36"
}

// languages are navigator.languages of a Chrome without a locale's override.
const languages = "en-US,en"

// flags say what holds from the first request on, also where no target is told:
// the script of a service worker is asked for by none. The shell sends the value
// of --accept-lang as it is, and what pages may read of it they are told over
// CDP.
func (f face) flags(o state.Overrides) []string {
	if f.none() {
		return nil
	}
	var flags []string
	if o.UserAgent == "" {
		flags = append(flags, "--user-agent="+f.userAgent())
	}
	if o.Locale == "" {
		flags = append(flags, "--accept-lang=en-US,en;q=0.9")
	}
	return flags
}

// over fills in what the session does not override itself.
func (f face) over(o overrides) overrides {
	if f.none() {
		return o
	}
	if o.languages == "" {
		o.languages = languages
	}
	if o.agent == "" {
		o.agent, o.hints = f.userAgent(), f.hints()
	}
	return o
}

// hints are the client hints of full Chrome on Linux (measured with 156).
func (f face) hints() *emulation.UserAgentMetadata {
	m := &emulation.UserAgentMetadata{Platform: "Linux", Architecture: "x86", Bitness: "64", FormFactors: []string{"Desktop"}}
	m.Brands, m.FullVersionList = brands(f.chrome.Name, strconv.Itoa(f.chrome.Major), f.chrome.Full)
	return m
}
