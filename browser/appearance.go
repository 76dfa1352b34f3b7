package browser

import (
	"context"
	"strconv"

	"github.com/chromedp/cdproto/emulation"

	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/state"
)

// appearance holds what pages of the shell see as their browser: the full Chrome of this
// daemon. So a site sees the same browser with either engine. The shell itself would say
// HeadlessChrome. The zero appearance is for full Chrome and changes nothing.
type appearance struct{ chrome launch.Version }

// appearance returns the appearance of a browser that is about to start.
func (s *Starter) appearance(ctx context.Context, dir *Dir, o Options) (appearance, error) {
	if o.Engine != EngineShell {
		return appearance{}, nil
	}
	v, err := s.Launcher.Version(ctx, dir, false)
	return appearance{v}, err
}

func (f appearance) none() bool { return f.chrome.Full == "" }

// userAgent returns full Chrome's User-Agent on Linux. Only its major version varies
// (User-Agent reduction).
func (f appearance) userAgent() string {
	return "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/" +
		strconv.Itoa(f.chrome.Major) + ".0.0.0 Safari/537.36"
}

// languages is navigator.languages of a Chrome without a locale override.
const languages = "en-US,en"

// flags returns the flags that apply from the first request on, even where no target is
// initialised. The request for a service worker's script belongs to no target. The shell
// sends the value of --accept-lang unchanged. Pages get navigator.languages over CDP.
func (f appearance) flags(o state.Overrides) []string {
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

// over fills in the values that the session does not override itself.
func (f appearance) over(o overrides) overrides {
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

// hints returns the client hints of full Chrome on Linux (measured with 156).
func (f appearance) hints() *emulation.UserAgentMetadata {
	m := &emulation.UserAgentMetadata{Platform: "Linux", Architecture: "x86", Bitness: "64", FormFactors: []string{"Desktop"}}
	m.Brands, m.FullVersionList = brands(f.chrome.Name, strconv.Itoa(f.chrome.Major), f.chrome.Full)
	return m
}
