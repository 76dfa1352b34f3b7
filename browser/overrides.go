package browser

import (
	"context"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"

	"github.com/stasisd/stasis/browser/targetinit"
	"github.com/stasisd/stasis/state"
)

// overrideFlags returns the overrides that are flags of Chrome. They apply to every
// process from its first request on, including service workers. The time zone is an
// environment variable for the same reason. Languages and proxy are set in the profile.
func overrideFlags(o state.Overrides) []string {
	var flags []string
	if o.UserAgent != "" {
		flags = append(flags, "--user-agent="+o.UserAgent)
	}
	return flags
}

// languageFlags returns the flags for the languages, for an engine that does not read
// them from the profile.
func languageFlags(o state.Overrides) []string {
	if o.Locale == "" {
		return nil
	}
	return []string{"--accept-lang=" + acceptLanguages(o.Locale)}
}

// overridesOf returns the overrides for a browser's targets.
func overridesOf(options Options, f appearance) overrides {
	o := overrides{Overrides: options.Overrides, agent: options.Overrides.UserAgent}
	o.hints = clientHints(o.agent)
	if o.Locale != "" {
		o.languages = acceptLanguages(o.Locale)
	}
	return f.over(o)
}

// acceptLanguages returns navigator.languages for a locale, such as "de-DE,de", or "" if
// it is empty.
func acceptLanguages(locale string) string {
	if language, _, regional := strings.Cut(locale, "-"); regional {
		return locale + "," + language
	}
	return locale
}

// overrides is the [targetinit.Setup] for overrides that no flag sets, or not in every
// target.
type overrides struct {
	state.Overrides
	agent     string // the User-Agent; "": Chrome's own
	hints     *emulation.UserAgentMetadata
	languages string // navigator.languages, comma-separated; "": Chrome's own
}

// needed reports whether any target has to be set up.
func (o overrides) needed() bool {
	return o.Wants("page")
}

func (o overrides) Wants(kind string) bool {
	everywhere := o.Locale != "" || o.agent != "" || len(o.ExtraHeaders) > 0
	return everywhere || kind == "page" && (o.Viewport != nil || o.Geolocation != nil)
}

func (o overrides) Initialise(ctx context.Context, t *targetinit.Target) { o.Renew(ctx, t) }

func (o overrides) Renew(ctx context.Context, t *targetinit.Target) {
	if o.Locale != "" {
		t.Post(ctx, emulation.SetLocaleOverride.Method, emulation.SetLocaleOverrideParams{Locale: o.Locale})
	}
	if o.agent != "" {
		t.Post(ctx, emulation.SetUserAgentOverride.Method, emulation.SetUserAgentOverrideParams{
			UserAgent: o.agent, AcceptLanguage: o.languages, UserAgentMetadata: o.hints})
	}
	if len(o.ExtraHeaders) > 0 {
		headers := network.Headers{}
		for name, value := range o.ExtraHeaders {
			headers[name] = value
		}
		nothing := int64(0) // Chrome need not keep response bodies
		t.Post(ctx, network.Enable.Method, network.EnableParams{MaxTotalBufferSize: &nothing, MaxResourceBufferSize: &nothing})
		t.Post(ctx, network.SetExtraHTTPHeaders.Method, network.SetExtraHTTPHeadersParams{Headers: headers})
	}
	if t.Info().Type != "page" {
		return
	}
	if v := o.Viewport; v != nil {
		t.Post(ctx, emulation.SetDeviceMetricsOverride.Method, emulation.SetDeviceMetricsOverrideParams{
			Width: v.Width, Height: v.Height, DeviceScaleFactor: v.DeviceScaleFactor, Mobile: v.Mobile})
	}
	if g := o.Geolocation; g != nil {
		t.Post(ctx, emulation.SetGeolocationOverride.Method, emulation.SetGeolocationOverrideParams{
			Latitude: &g.Latitude, Longitude: &g.Longitude, Accuracy: &g.Accuracy})
	}
}

// TargetClosed sets the locale again in the remaining targets. Chrome keeps the locale of a
// process with the first target that set it.
func (o overrides) TargetClosed(ctx context.Context, _ *targetinit.Target, remaining []*targetinit.Target) {
	if o.Locale == "" {
		return
	}
	for _, t := range remaining {
		t.Post(ctx, emulation.SetLocaleOverride.Method, emulation.SetLocaleOverrideParams{Locale: o.Locale})
	}
}
