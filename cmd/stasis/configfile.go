//go:build linux

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/stasisd/stasis/fault"
)

// maxConfigFile is how large a configuration file may be, in bytes.
const maxConfigFile = 1 << 20

// configFile is a configuration file: settings of serve under the names of their flags. It is
// a kong.Resolver, which gives them to serve, and to flags of other verbs that read the same
// environment variable.
type configFile struct {
	path     string
	mode     fs.FileMode
	serve    *kong.Node
	settings map[string]fileSetting // by the flag's name
}

// fileSetting is a setting in a configuration file.
type fileSetting struct {
	text string // as the flag would give it
	line int
	flag *kong.Flag // of serve
}

// systemConfigFile is the configuration file of the machine.
const systemConfigFile = "/etc/stasis/config.yaml"

// defaultConfigFile returns the configuration file that is read if it exists and no other is
// given. For root it is that of the machine.
func defaultConfigFile() string {
	dir, err := os.UserConfigDir()
	if os.Geteuid() == 0 || err != nil {
		return systemConfigFile
	}
	return firstConfigFile(filepath.Join(dir, "stasis", "config.yaml"), systemConfigFile)
}

// firstConfigFile returns the user's own configuration file if it exists. Else it returns that of
// the machine if the user may read it, so that commands of the daemon's user find the daemon's
// settings. If there is neither, it returns the user's own.
func firstConfigFile(own, machine string) string {
	if _, err := os.Stat(own); err == nil {
		return own
	}
	file, err := os.Open(machine)
	if err != nil {
		return own
	}
	_ = file.Close() // it was not read
	return machine
}

// readConfigFile reads a configuration file and checks each of its settings alone. It refuses
// a file that every user can write, and a secret that every user can read.
func readConfigFile(path string, serve *kong.Node) (*configFile, error) {
	const op = "config.file"
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Config, op, "--config: the file %s does not exist", path)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "--config: "+path+" cannot be read")
	}
	defer func() { _ = file.Close() }() // it is only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fault.Wrap(err, fault.Config, op, "--config: "+path+" cannot be read")
	case info.IsDir():
		return nil, fault.New(fault.Config, op, "--config: %s is a folder, not a file", path)
	case info.Mode().Perm()&0o002 != 0:
		return nil, fault.New(fault.Config, op, "--config: every user can write %s; set its mode to 0644 or less", path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxConfigFile+1))
	if err == nil && len(raw) > maxConfigFile {
		err = fmt.Errorf("larger than %d bytes", maxConfigFile)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "--config: "+path+" cannot be read")
	}
	f := &configFile{path: path, mode: info.Mode(), serve: serve, settings: map[string]fileSetting{}}
	return f, f.parse(raw)
}

// parse reads the settings of a YAML document.
func (f *configFile) parse(raw []byte) error {
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) { // nothing but comments
		return nil
	}
	if err != nil {
		return f.notYAML(err)
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode && root.Tag != "!!null" {
		return f.invalid(root, "", "must have lines with a name and a value, such as listen: 127.0.0.1:8080")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := f.add(root.Content[i], root.Content[i+1]); err != nil {
			return err
		}
	}
	if err := decoder.Decode(&document); !errors.Is(err, io.EOF) {
		return fault.New(fault.Config, "config.file", "%s: must have one YAML document, and nothing after it", f.path)
	}
	return nil
}

// add checks a setting and adds it.
func (f *configFile) add(key, value *yaml.Node) error {
	name := key.Value
	at := slices.IndexFunc(f.serve.Flags, func(flag *kong.Flag) bool { return flag.Name == name && len(flag.Envs) > 0 })
	if at < 0 {
		return f.invalid(key, name, "no setting has this name; stasis serve --help lists them, here without --")
	}
	if before, twice := f.settings[name]; twice {
		return f.invalid(key, name, fmt.Sprintf("is set twice; the first time in line %d", before.line))
	}
	flag := f.serve.Flags[at]
	text, problem := textOf(value, flag)
	if problem != "" {
		return f.invalid(key, name, problem)
	}
	target := reflect.New(flag.Target.Type()).Elem()
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text})
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target); err != nil {
		return f.invalid(key, name, err.Error())
	}
	if flag.Enum != "" && !flag.EnumMap()[text] {
		return f.invalid(key, name, "must be one of "+strings.Join(flag.EnumSlice(), ", "))
	}
	if _, is := target.Interface().(secretText); is && text != "" && f.mode.Perm()&0o007 != 0 {
		return f.invalid(key, name, "is or may contain a secret, and every user can read this file; set its mode to 0640 or 0600")
	}
	f.settings[name] = fileSetting{text: text, line: key.Line, flag: flag}
	return nil
}

// textOf returns a value in the form of the command line, or what is wrong with it.
func textOf(value *yaml.Node, flag *kong.Flag) (text, problem string) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return "", "has no value; give one, or remove the line"
	case value.Kind == yaml.ScalarNode:
		return value.Value, ""
	case value.Kind != yaml.SequenceNode:
		return "", "must be one value, not names with values"
	case !flag.IsSlice():
		return "", "must be one value, not a list"
	}
	var texts []string
	for _, element := range value.Content {
		if element.Kind != yaml.ScalarNode || element.Tag == "!!null" {
			return "", "must be a list of single values"
		}
		texts = append(texts, element.Value)
	}
	return kong.JoinEscaped(texts, flag.Tag.Sep), ""
}

// yamlProblem matches a syntax error of the decoder, which names no line for the first one.
var yamlProblem = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// notYAML returns the error for a file with a syntax error.
func (f *configFile) notYAML(err error) error {
	at, what := "1", err.Error()
	if found := yamlProblem.FindStringSubmatch(what); found != nil {
		at, what = cmp.Or(found[1], at), found[2]
	}
	return fault.New(fault.Config, "config.file", "%s:%s: is not valid YAML: %s", f.path, at, what)
}

// invalid returns the error for a place in the file.
func (f *configFile) invalid(at *yaml.Node, name, what string) error {
	if name != "" {
		what = name + ": " + what
	}
	return fault.New(fault.Config, "config.file", "%s:%d: %s", f.path, at.Line, what)
}

// name returns the path of the file; "" for none.
func (f *configFile) name() string {
	if f == nil {
		return ""
	}
	return f.path
}

// find returns the file's value for a flag of any verb. A flag that reads no variable, or
// another one than serve's, has another meaning.
func (f *configFile) find(flag *kong.Flag) (s fileSetting, there bool) {
	if f == nil {
		return s, false
	}
	s, there = f.settings[flag.Name]
	return s, there && slices.Equal(s.flag.Envs, flag.Envs)
}

// Validate implements kong.Resolver. The file was checked when it was read.
func (*configFile) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver. It returns nothing for a flag whose environment variable
// is set: kong would prefer the file.
func (f *configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	s, there := f.find(flag)
	if !there || variableOf(flag) != "" {
		return nil, nil
	}
	return s.text, nil
}
