package main

// The guards against those who make the files that callers upload.

const confineFile = "confine/restrict.go"

var uploads = []guard{
	{
		name:    "upload-user",
		keeps:   "what reads an upload runs as another user than the daemon, and has no capabilities",
		without: []edit{{confineFile, `	if err := become(o.UID); err != nil {`, `	if err := become(os.Geteuid()); err != nil {`}},
		test:    "TestAttackImportChild$/^root$/its rights", fails: "it has the users",
	},
	{
		name:    "upload-network",
		keeps:   "what reads an upload has no network",
		without: []edit{{"confine/confiner.go", `		candidates = []uintptr{ownNetwork, userNetwork, 0}`, `		candidates = []uintptr{0}`}},
		test:    "TestAttackImportChild$/^root$/its rights", fails: "its network is the daemon's",
	},
	{
		name:    "upload-calls",
		keeps:   "what reads an upload makes no sockets, processes, links or devices",
		without: []edit{{confineFile, `	layers.Syscalls = filterSyscalls() == nil`, `	_ = filterSyscalls`}},
		test:    "TestAttackImportChild$/^root$/its rights", fails: "a process reads the upload",
	},
	{
		name:  "upload-files",
		keeps: "what reads an upload opens no file but those of its folder",
		without: []edit{
			{confineFile, `	return abi, landlock.V6.BestEffort().Restrict(rules...)`, `	_ = rules
	return abi, nil`},
			{confineFile, `	if layers.Landlock > 0 {`, `	if false {`},
		},
		also: "the check that it holds",
		pkg:  "./confine", test: "TestChild$", fails: "read /etc/passwd",
	},
	{
		name:  "upload-daemon-killed",
		keeps: "what reads an upload ends with its daemon, also if it is stopped",
		without: []edit{
			{"confine/confiner.go", `Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: c.flags}`, `Setsid: true, Cloneflags: c.flags}`},
			{confineFile, `unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0)`, `unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)`},
		},
		also: "the signal is set before and after the change of the user",
		test: "TestAttackImportChild$/^root$/its daemon is killed", fails: "the process has ended",
	},
	{
		name:    "upload-links",
		keeps:   "an archive with a link or a device is refused",
		without: []edit{{"snapshot/unpacker.go", `	if !dir && h.Typeflag != tar.TypeReg || h.Linkname != "" {`, `	if false {`}},
		test:    "TestAttackImportChild$/^root$/a link", fails: "FAIL: TestAttackImportChild/root/a_link",
	},
	{
		name:    "upload-depth",
		keeps:   "an archive with deep paths is refused",
		without: []edit{{"snapshot/foreign.go", `	if strings.Count(h.Name, "/") >= MaxDepth {`, `	if strings.Count(h.Name, "/") >= 1000*MaxDepth {`}},
		test:    "TestAttackImportChild$/^root$/a deep path", fails: "FAIL: TestAttackImportChild/root/a_deep_path",
	},
	{
		name:    "upload-objects",
		keeps:   "a state file with millions of objects is refused",
		without: []edit{{"state/objectcount.go", `		if objects > maxObjects || elements > mostElements {`, `		if objects > 1000*maxObjects || elements > 1000*mostElements {`}},
		test:    "TestAttackStateFiles", fails: "FAIL: TestAttackStateFiles",
	},
	{
		name:  "profile-settings",
		keeps: "an imported profile brings no settings that let pages read files",
		without: []edit{{"browser/profile/permissions.go", `		dropGrants(of)
`, `		_ = dropGrants
		_ = of
`}},
		test: "TestAttackProfiles$", fails: "FAIL: TestAttackProfiles",
	},
}
