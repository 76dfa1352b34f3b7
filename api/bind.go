package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/stasisd/stasis/fault"
)

// unsupportedField is the type of a field that the API knows and Stasis does not support yet. Any
// value but null is refused as unsupported.
type unsupportedField struct{}

// boolOrObject is an object in whose place JSON may have true or false.
type boolOrObject interface{ setBool(on bool) }

// unknownKeeper is an object that keeps the members that it has no field for.
type unknownKeeper interface {
	keepUnknown(name string, value json.RawMessage)
}

// givenRecorder is a struct that records which of its fields a client gave.
type givenRecorder interface{ setGiven(name string) }

// recordGiven records a name in a struct that records names.
func recordGiven(dst reflect.Value, name string, value any) {
	if to, ok := dst.Addr().Interface().(givenRecorder); ok && value != nil {
		to.setGiven(name)
	}
}

// binder decodes parsed JSON into wire structs by their json tags.
//
// Null leaves a field unchanged. So null means the same as absence, and defaults can be set
// beforehand. A string must not be empty unless its field is tagged `empty:"ok"`: an ID
// that a client lost must not be taken for one that it left out. Names without a field are
// collected in unknown, by path, unless the struct is an unknownKeeper.
type binder struct {
	unknown []unknownField
	known   map[reflect.Type]map[string]reflect.StructField // by json name
}

// bind decodes a JSON object into dst, a pointer to a struct.
func (b *binder) bind(value any, dst any) error {
	return b.set(nil, value, reflect.ValueOf(dst).Elem(), false)
}

func (b *binder) set(path *fieldPath, value any, dst reflect.Value, emptyOK bool) error {
	if value == nil {
		return nil
	}
	if dst.Type() == reflect.TypeFor[unsupportedField]() {
		return fault.New(fault.Unsupported, "api.bind", "%s: not supported yet; leave it out or set it to null", path)
	}
	if dst.Type() == reflect.TypeFor[json.RawMessage]() { // any value
		raw, err := json.Marshal(value)
		dst.SetBytes(raw)
		return err
	}
	if dst.Type() == reflect.TypeFor[anyValue]() {
		dst.Set(reflect.ValueOf(anyValue{value}))
		return nil
	}
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return b.set(path, value, dst.Elem(), emptyOK)
	case reflect.Struct:
		if fields, ok := value.(object); ok {
			return b.setStruct(path, fields, dst)
		}
		if truth, ok := value.(bool); ok {
			if to, ok := dst.Addr().Interface().(boolOrObject); ok {
				to.setBool(truth)
				return nil
			}
		}
	case reflect.Map:
		if fields, ok := value.(object); ok {
			return b.setMap(path, fields, dst)
		}
	case reflect.Slice:
		if items, ok := value.([]any); ok {
			return b.setSlice(path, items, dst)
		}
	case reflect.String:
		if text, ok := value.(string); ok {
			if text == "" && !emptyOK {
				return invalid(path.String(), "must not be empty; if it is optional, leave it out or set it to null")
			}
			dst.SetString(text)
			return nil
		}
	case reflect.Bool:
		if truth, ok := value.(bool); ok {
			dst.SetBool(truth)
			return nil
		}
	case reflect.Int64:
		if number, ok := value.(json.Number); ok {
			if n, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
				dst.SetInt(n)
				return nil
			}
		}
	case reflect.Float64:
		if number, ok := value.(json.Number); ok {
			if f, err := number.Float64(); err == nil {
				dst.SetFloat(f)
				return nil
			}
		}
	}
	return mistyped(path, dst, describe(value))
}

func (b *binder) setStruct(path *fieldPath, fields object, dst reflect.Value) error {
	for _, m := range fields {
		field, ok := b.field(dst.Type(), m.name)
		if keeper, keeps := dst.Addr().Interface().(unknownKeeper); !ok && keeps {
			if m.value != nil { // null means absence
				raw, err := json.Marshal(m.value)
				if err != nil {
					return err
				}
				keeper.keepUnknown(m.name, raw)
			}
			continue
		}
		if !ok {
			b.unknownIn(dst.Type(), path.member(m.name))
			continue
		}
		recordGiven(dst, m.name, m.value)
		emptyOK := field.Tag.Get("empty") == "ok"
		if err := b.set(path.member(m.name), m.value, dst.FieldByIndex(field.Index), emptyOK); err != nil {
			return err
		}
	}
	return nil
}

func (b *binder) setMap(path *fieldPath, fields object, dst reflect.Value) error {
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(dst.Type()))
	}
	for _, m := range fields {
		if m.value == nil { // a null entry means absence
			continue
		}
		element := reflect.New(dst.Type().Elem()).Elem()
		if err := b.set(path.member(m.name), m.value, element, true); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(m.name), element)
	}
	return nil
}

func (b *binder) setSlice(path *fieldPath, items []any, dst reflect.Value) error {
	dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	for i, item := range items {
		element := path.index(i)
		if item == nil {
			return mistyped(element, dst.Index(i), "null")
		}
		if err := b.set(element, item, dst.Index(i), false); err != nil {
			return err
		}
	}
	return nil
}

// field returns the field with that json name; fields of embedded structs count.
func (b *binder) field(t reflect.Type, name string) (field reflect.StructField, ok bool) {
	fields := b.known[t]
	if fields == nil {
		fields = map[string]reflect.StructField{}
		for _, f := range reflect.VisibleFields(t) {
			tag := f.Tag.Get("json")
			if _, there := fields[tag]; !there && f.IsExported() && !f.Anonymous {
				fields[tag] = f
			}
		}
		if b.known == nil {
			b.known = map[reflect.Type]map[string]reflect.StructField{}
		}
		b.known[t] = fields
	}
	field, ok = fields[name]
	return field, ok
}

// invalid returns the error for a value that is not allowed. allowed says what is.
func invalid(field, allowed string, args ...any) error {
	return fault.New(fault.InvalidField, "api.check", "%s: %s", field, fmt.Sprintf(allowed, args...))
}

func mistyped(path *fieldPath, dst reflect.Value, got string) error {
	field := "body"
	if path != nil {
		field = path.String()
	}
	return fault.New(fault.InvalidRequest, "api.bind", "%s: must be %s, not %s", field, typeName(dst.Type()), got)
}

func typeName(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[boolOrObject]()) {
		return "true, false or an object"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "an array"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	default:
		return "a string"
	}
}

func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case object:
		return "an object"
	case []any:
		return "an array"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return "the number " + quoted(v.String())
	case string:
		return "a string"
	default:
		return "that"
	}
}
