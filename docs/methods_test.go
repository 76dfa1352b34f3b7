package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxMethods is how many methods a type may have.
const maxMethods = 60

// No type has more than maxMethods methods, including those of embedded types: a type with
// more has several responsibilities.
func TestMethods(t *testing.T) {
	types := readTypes(t)
	if len(types) < 100 {
		t.Fatalf("only %d types found: is the test looking at the right module?", len(types))
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		n := len(types.methods(name, map[string]bool{}))
		if n > maxMethods {
			t.Errorf("%s has %d methods, more than %d: split it by what its methods are about", name, n, maxMethods)
		}
	}
}

// moduleTypes are the types of the module's packages, by "path/of/package.Type".
type moduleTypes map[string]*declaredType

// declaredType is what the source says of a type.
type declaredType struct {
	own      []string // names of the methods that are declared on it
	embedded []string // names of types of the module
}

// methods returns the names of a type's methods, including those of embedded types.
func (types moduleTypes) methods(name string, seen map[string]bool) map[string]bool {
	all := map[string]bool{}
	declared := types[name]
	if declared == nil || seen[name] {
		return all // a type of another module, or a cycle
	}
	seen[name] = true
	for _, method := range declared.own {
		all[method] = true
	}
	for _, other := range declared.embedded {
		maps.Copy(all, types.methods(other, seen))
	}
	return all
}

// of returns the entry of a type and makes it if it is missing.
func (types moduleTypes) of(name string) *declaredType {
	if types[name] == nil {
		types[name] = &declaredType{}
	}
	return types[name]
}

// readTypes reads the sources of all packages, except tests.
func readTypes(t *testing.T) moduleTypes {
	t.Helper()
	types := moduleTypes{}
	for _, p := range listPackages(t) {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pathInModule(p.ImportPath)), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			types.read(pathInModule(p.ImportPath), file)
		}
	}
	return types
}

// read adds the types that a file declares.
func (types moduleTypes) read(pkg string, file *ast.File) {
	imports := map[string]string{} // by the name in this file
	for _, i := range file.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		if inModule(imported) {
			imports[name] = pathInModule(imported)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				receiver := types.of(typeKey(pkg, imports, n.Recv.List[0].Type))
				receiver.own = append(receiver.own, n.Name.Name)
			}
			return false
		case *ast.TypeSpec:
			declared := types.of(pkg + "." + n.Name.Name)
			var fields *ast.FieldList
			switch of := n.Type.(type) {
			case *ast.StructType:
				fields = of.Fields
			case *ast.InterfaceType:
				fields = of.Methods
			default:
				return false
			}
			for _, field := range fields.List {
				_, method := field.Type.(*ast.FuncType)
				switch {
				case len(field.Names) == 0:
					declared.embedded = append(declared.embedded, typeKey(pkg, imports, field.Type))
				case method: // of an interface; a field with a function type does not count
					if _, is := n.Type.(*ast.InterfaceType); is {
						declared.own = append(declared.own, field.Names[0].Name)
					}
				}
			}
			return false
		}
		return true
	})
}

// typeKey returns the key of a type in moduleTypes; "" if it is not a type of the module.
func typeKey(pkg string, imports map[string]string, of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeKey(pkg, imports, of.X)
	case *ast.IndexExpr:
		return typeKey(pkg, imports, of.X)
	case *ast.IndexListExpr:
		return typeKey(pkg, imports, of.X)
	case *ast.Ident:
		return pkg + "." + of.Name
	case *ast.SelectorExpr:
		if x, ok := of.X.(*ast.Ident); ok && imports[x.Name] != "" {
			return imports[x.Name] + "." + of.Sel.Name
		}
	}
	return ""
}
