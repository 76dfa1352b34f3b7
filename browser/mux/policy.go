package mux

import (
	"errors"
	"strings"
)

// Policy holds what the policy table needs to know about the session.
type Policy struct {
	// FilesDir is the absolute path of the folder with the session's files. Its pages may
	// read files from it. If it is empty, commands that name files are refused.
	FilesDir string
	// IncomingDir is the absolute path of the folder that Chrome writes downloads to. If it
	// is empty, commands that choose such a folder are refused.
	IncomingDir string
}

// rule says how a client's command is treated, and why.
type rule struct {
	why     string
	refused bool
	act     func(*call) error // rewrites the parameters or returns why not; nil: all are allowed
}

// call is one client's command while it is checked.
type call struct {
	*Policy
	method  string // a rule may replace it
	context string // browser context of the target; "" if no client created it
	params  fields
	visible func(target string) bool
	extensions
	changed bool // params were rewritten
}

// table holds every rule, by method or by "Domain.*". A rule for a method takes
// precedence. A command with neither is refused, so commands of a newer Chrome must be
// reviewed first. Domains with a command that reads or writes files, runs programs or
// reaches beyond the session's pages are listed command by command. The table is never
// modified.
var table = []entry{
	// Addresses: a page may not show files or Chrome's internal pages.
	{"Page.navigate Target.createTarget Network.loadNetworkResource", rule{act: urlIn("url"), why: "opens or reads the address"}},
	{"Fetch.continueRequest", rule{act: urlIn("url"), why: "sends a request to another address"}},

	// Scripts: they run only in pages that clients may open.
	{"Page.addScriptToEvaluateOnNewDocument", rule{act: scriptIn("source"), why: "runs in every later page"}},
	{"Page.addScriptToEvaluateOnLoad", rule{act: scriptIn("scriptSource"), why: "runs in every later page"}},
	{"Page.reload", rule{act: scriptIn("scriptToEvaluateOnLoad"), why: "runs a script in the reloaded page"}},
	{"Debugger.setBreakpoint Debugger.setBreakpointByUrl Debugger.setBreakpointOnFunctionCall", rule{act: scriptIn("condition"), why: "runs the condition in every later page"}},

	// Files: only those in the session's folders. Downloads always go there.
	{"DOM.setFileInputFiles", rule{act: filesIn("files"), why: "gives files to a page"}},
	{"Input.dispatchDragEvent", rule{act: drag, why: "drops files and addresses on a page"}},
	{"Browser.setDownloadBehavior Page.setDownloadBehavior", rule{act: downloadHere, why: "chooses where Chrome writes"}},
	{"Tracing.start", rule{act: tracing, why: "a perfetto configuration or the system backend can write files and trace the machine"}},

	// Nested ways to send commands would bypass this table.
	{"Target.attachToTarget", rule{act: flatAttach, why: "nested messages would bypass the policy"}},
	{"Target.setAutoAttach", rule{act: flatAutoAttach, why: "nested messages would bypass the policy"}},
	{"Target.sendMessageToTarget", rule{refused: true, why: "nested messages would bypass the policy; attach with flatten: true"}},
	{"Target.exposeDevToolsProtocol", rule{refused: true, why: "a page could send CDP commands that bypass the policy"}},
	{"Target.openDevTools Target.getDevToolsTarget", rule{refused: true, why: "developer tools send CDP commands that bypass the policy"}},
	{"Target.setRemoteLocations", rule{refused: true, why: "Chrome would connect to other debuggers"}},
	{"Input.dispatchKeyEvent", rule{act: pageKeys, why: "with a native key code the key reaches Chrome's own shortcuts: developer tools, chrome: pages, quit"}},

	// Hidden targets are treated as not existing.
	{"Target.activateTarget Target.closeTarget Target.getTargetInfo Target.autoAttachRelated " +
		"Browser.getWindowForTarget", rule{act: visibleTarget, why: "the target may be hidden"}},
	{"Target.createBrowserContext", rule{act: plainContext, why: "universal network access lets a page read other origins"}},
	{"Target.attachToBrowserTarget Target.detachFromTarget Target.disposeBrowserContext " +
		"Target.getBrowserContexts Target.getTargets Target.setDiscoverTargets", rule{why: "stays within the session's browser"}},

	// The browser process and its machine.
	{"Browser.crash Browser.crashGpuProcess", rule{refused: true, why: "it would end the session for every client"}},
	{"Browser.executeBrowserCommand", rule{refused: true, why: "it drives Chrome's own interface"}},
	{"Browser.getBrowserCommandLine SystemInfo.getInfo SystemInfo.getProcessInfo", rule{refused: true, why: "it reveals details of the machine"}},
	{"Browser.addMockCamera Browser.addPrivacySandboxEnrollmentOverride Browser.cancelDownload " +
		"Browser.close Browser.getGlobalPrivacyControl Browser.getHistogram Browser.getHistograms " +
		"Browser.getVersion Browser.getWindowBounds Browser.grantPermissions Browser.resetPermissions " +
		"Browser.setContentsSize Browser.setDockTile Browser.setGlobalPrivacyControl Browser.setPermission " +
		"Browser.setWindowBounds SystemInfo.getFeatureState", rule{why: "stays within the session's browser"}},
	{"Tracing.end Tracing.getCategories Tracing.getTrackEventDescriptor Tracing.recordClockSyncMarker " +
		"Tracing.requestMemoryDump", rule{why: "belongs to a trace that the rule of Tracing.start allowed"}},
	{"DeviceAccess.selectPrompt", rule{refused: true, why: "it gives a page a device of the machine"}},

	// Whole domains.
	{"Extensions.*", rule{refused: true, why: "extensions are managed by the API"}},
	{"PWA.*", rule{refused: true, why: "it installs and starts programs"}},
	{"Tethering.*", rule{refused: true, why: "it opens ports of the machine"}},
	{"Cast.*", rule{refused: true, why: "it reaches devices in the machine's network"}},
	{"Accessibility.* Ads.* Animation.* Audits.* Autofill.* BackgroundService.* BluetoothEmulation.* CSS.* " +
		"CacheStorage.* Console.* CrashReportContext.* DOM.* DOMDebugger.* DOMSnapshot.* DOMStorage.* " +
		"Debugger.* DeviceAccess.* DeviceOrientation.* DigitalCredentials.* Emulation.* EventBreakpoints.* " +
		"FedCm.* Fetch.* FileSystem.* FindInPage.* HeadlessExperimental.* HeapProfiler.* IO.* IndexedDB.* " +
		"Input.* Inspector.* LayerTree.* Log.* Media.* Memory.* Network.* Overlay.* Page.* Performance.* " +
		"PerformanceTimeline.* Preload.* Profiler.* Runtime.* Schema.* Security.* ServiceWorker.* " +
		"SmartCardEmulation.* Storage.* WebAudio.* WebAuthn.* WebMCP.*", rule{why: "stays within the pages and storage of the session"}},
}

// rules indexes the table by method, or by "Domain.*".
var rules = index(table)

// entry is one line of the table. methods are separated by spaces.
type entry struct {
	methods string
	rule    rule
}

func index(entries []entry) map[string]rule {
	t := map[string]rule{}
	for _, e := range entries {
		for _, method := range strings.Fields(e.methods) {
			t[method] = e.rule
		}
	}
	return t
}

func ruleFor(method string) (rule, bool) {
	if r, ok := rules[method]; ok {
		return r, true
	}
	domain, _, _ := strings.Cut(method, ".")
	r, ok := rules[domain+".*"]
	return r, ok
}

// apply checks one command. It returns the parameters to send, or the refusal. c.method is
// the method to send.
func (p *Policy) apply(c *call, params []byte) ([]byte, *cdpError) {
	r, known := ruleFor(c.method)
	if !known {
		return nil, &cdpError{codeNoMethod, "'" + c.method + "' is not known to Stasis"}
	}
	if r.refused {
		return nil, refusal(c.method, errors.New(r.why))
	}
	if r.act == nil {
		return params, nil
	}
	c.Policy = p
	if err := c.params.read(params); err != nil {
		return nil, &cdpError{codeParams, "Invalid parameters: " + err.Error()}
	}
	switch err := r.act(c); err {
	case nil:
	case errNoTarget:
		return nil, &cdpError{codeParams, err.Error()}
	default:
		return nil, refusal(c.method, err)
	}
	if !c.changed {
		return params, nil
	}
	return c.params.write(), nil
}

func refusal(method string, why error) *cdpError {
	return &cdpError{codeRefused, "Stasis does not allow " + method + ": " + why.Error()}
}

// allowedOnForeign reports whether a command may run in a page that clients may not open.
// These are the commands that a client sends to any new page, and those that leave or
// close it. None of them reads the page or runs a script in it.
func allowedOnForeign(method string) bool {
	switch method {
	case "Page.close", "Page.navigate", "Page.stopLoading", "Page.bringToFront", "Page.getNavigationHistory",
		"Page.navigateToHistoryEntry", "Page.getFrameTree", "Page.setLifecycleEventsEnabled",
		"Runtime.runIfWaitingForDebugger":
		return true
	}
	domain, name, _ := strings.Cut(method, ".")
	return name == "enable" || name == "disable" || domain == "Target" || domain == "Browser" || domain == "Emulation"
}
