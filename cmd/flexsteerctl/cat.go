// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/pkg/config"
)

func newCat(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "cat [FILE-NAME...]",
		Short: "Print the configuration files in effect",
		Long: `Print every file that is in effect, in the order in which they apply, drop-ins
behind their file, each below a line with its path. FILE-NAME such as
10-homa.yaml prints that file and its drop-ins only.`,
		ValidArgsFunction: a.completeConfigFiles,
		RunE:              action(a.cat),
	}
	a.jsonFlag(c)
	return c
}

// catFile is one file as JSON.
type catFile struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

func (a *app) cat(names []string) error {
	files, err := a.filesNamed(names)
	if err != nil {
		return err
	}
	texts := []catFile{}
	for _, file := range files {
		data, err := fs.ReadFile(a.fsys(), strings.TrimPrefix(file, "/"))
		if err != nil {
			return cannot(err)
		}
		texts = append(texts, catFile{file, string(data)})
	}
	if a.json {
		return a.printJSON(texts)
	}
	ink := painter(colours(a.out))
	var b bytes.Buffer
	for i, f := range texts {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(ink.paint(grey, "# "+f.Path) + "\n" + f.Text)
		if !strings.HasSuffix(f.Text, "\n") {
			b.WriteByte('\n')
		}
	}
	_, err = a.out.Write(b.Bytes())
	return err
}

// inEffect is the files that are in effect, drop-ins behind their file.
func (a *app) inEffect() ([]string, error) {
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	files, err := config.Files(a.fsys(), dirs)
	if err != nil {
		return nil, a.configErrors(err)
	}
	return files, nil
}

// filesNamed is the files in effect of these names, with their drop-ins.
func (a *app) filesNamed(names []string) ([]string, error) {
	all, err := a.inEffect()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no configuration files; flexsteerctl edit 10-NAME.yaml makes a first one")
	}
	if len(names) == 0 {
		return all, nil
	}
	var out []string
	for _, name := range names {
		found := false
		for _, file := range all {
			if belongsTo(file, path.Base(name)) || path.Clean(name) == file {
				out, found = append(out, file), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: no such file is in effect; those are %s", name, strings.Join(baseNames(all), ", "))
		}
	}
	return out, nil
}

// belongsTo reports whether file is the main file called name, or one of its drop-ins.
func belongsTo(file, name string) bool {
	dir, base := path.Split(file)
	parent := path.Base(dir)
	if strings.HasSuffix(parent, ".yaml.d") {
		return parent == name+".d"
	}
	return base == name
}

// baseNames is the names of the main files.
func baseNames(files []string) (names []string) {
	for _, file := range files {
		if !strings.HasSuffix(path.Dir(file), ".yaml.d") {
			names = append(names, path.Base(file))
		}
	}
	return names
}

func (a *app) completeConfigFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	files, err := a.inEffect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return baseNames(files), cobra.ShellCompDirectiveNoFileComp
}
