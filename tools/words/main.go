// words holds the comments of Go code to nouns: the command fails if more than 5 % of the words of a package's comments are pronouns and the like. Comments of
// well-kept repositories of this field (opentelemetry-collector-contrib's fileconsumer and kafkareceiver, Jaeger, Prometheus) have 2.9 to 4.4 %.
//
// `if x = y; cond` with a plain assignment counts too, because it hides the assignment from a reader who looks for conditions: at most 40 in the repository.
//
//	go -C tools run ./words ROOT [-top]
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

const (
	maxShare = 0.05
	maxIfs   = 40
	// A package of a few sentences has no share worth the name.
	minWords = 200
)

var pronouns = map[string]bool{
	"it": true, "its": true, "that": true, "this": true, "those": true, "these": true, "they": true, "them": true,
	"what": true, "which": true, "one": true, "other": true, "such": true, "there": true, "so": true,
}

var word = regexp.MustCompile(`[A-Za-z]+`)

// pack is the count of a directory.
type pack struct {
	dir             string
	words, pronouns int
	ifs             []token.Position
}

func (p *pack) share() float64 { return float64(p.pronouns) / float64(max(p.words, 1)) }

func main() {
	packs, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !judge(packs, len(os.Args) > 2) {
		os.Exit(1)
	}
}

// read counts all Go files under root but generated ones and those of bin.
func read(root string) ([]*pack, error) {
	byDir := map[string]*pack{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if byDir[dir] == nil {
			byDir[dir] = &pack{dir: dir}
		}
		byDir[dir].count(files, file)
		return err
	})
	packs := make([]*pack, 0, len(byDir))
	for _, p := range byDir {
		packs = append(packs, p)
	}
	sort.Slice(packs, func(i, j int) bool { return packs[i].dir < packs[j].dir })
	return packs, err
}

func (p *pack) count(files *token.FileSet, file *ast.File) {
	for _, group := range file.Comments {
		for _, w := range word.FindAllString(group.Text(), -1) {
			p.words++
			if pronouns[strings.ToLower(w)] {
				p.pronouns++
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		statement, ok := n.(*ast.IfStmt)
		if !ok {
			return true
		}
		if assign, ok := statement.Init.(*ast.AssignStmt); ok && assign.Tok == token.ASSIGN {
			p.ifs = append(p.ifs, files.Position(assign.Pos()))
		}
		return true
	})
}

// judge prints the packages above a limit, or with all every package, and reports whether no package is.
func judge(packs []*pack, all bool) bool {
	good := true
	var whole pack
	for _, p := range packs {
		whole.words += p.words
		whole.pronouns += p.pronouns
		whole.ifs = append(whole.ifs, p.ifs...)
		bad := p.share() > maxShare && p.words >= minWords
		if bad || all {
			fmt.Printf("%s: %.1f %% of the words of comments are pronouns (%d of %d), limit %.0f %%\n", p.dir, 100*p.share(), p.pronouns, p.words, 100*maxShare)
		}
		good = good && !bad
	}
	if len(whole.ifs) > maxIfs {
		good = false
		for _, at := range whole.ifs {
			fmt.Printf("%s: if with a plain assignment; %d in all, limit %d\n", at, len(whole.ifs), maxIfs)
		}
	}
	if all || !good {
		fmt.Printf("in all: %.1f %% of %d words\n", 100*whole.share(), whole.words)
	}
	return good
}
