// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"slices"
)

// Plan is what a run of prepare may do and should look at.
type Plan struct {
	Install bool     // build and install the module where it is missing
	Checked bool     // the configuration says that the daemon heeds the firmware settings
	Ask     bool     // ask the cards
	Only    []string // PCI functions whose cards to ask, and nothing else; nil: everything
}

// Preparer runs a Plan and leaves its facts in the Store.
type Preparer struct {
	Store   Store
	Machine *Machine
	Asker   *Asker
	Waiting func() // nil, or told that another one is at it
}

// Run finds out and writes down, as soon as something is known: the module may
// take minutes, and a card may not answer for one. It waits for another Run. A
// card that another one asked since this one began is not asked again. What could
// not be written down keeps nothing from being found out.
func (p *Preparer) Run(ctx context.Context, plan Plan) (Facts, error) {
	before, _ := p.Store.Facts()
	lock, err := p.Store.Lock(ctx, p.Waiting)
	if err != nil {
		return Facts{}, err
	}
	defer lock.Close()
	facts, _ := p.Store.Facts()
	facts.Boot, facts.Firmware.Checked = bootID(p.Machine.FS), plan.Checked
	p.drop(&facts)
	if plan.Only == nil {
		p.module(ctx, plan, &facts)
	}
	if err = errors.Join(ctx.Err(), p.write(&facts)); err != nil || !plan.Ask {
		return facts, err
	}
	return facts, p.ask(ctx, plan, &facts, &before)
}

// module looks at the module and, where that is to be, installs it. What an
// earlier run in this boot did to it is kept, as is why it could not. Programs that
// were ended on the way have told nothing.
func (p *Preparer) module(ctx context.Context, plan Plan, f *Facts) {
	now := p.Machine.Look(ctx)
	now.Did = f.Module.Did
	if now.Verdict == f.Module.Verdict {
		now.Failure = f.Module.Failure
	}
	if ctx.Err() != nil {
		return
	}
	f.Module = now
	if plan.Install && now.installable() {
		f.Module.Failure = nil
		p.write(f) // the build takes minutes; what is wrong with the file is told at the end
		if now = p.install(ctx, f.Module); ctx.Err() == nil {
			f.Module = now
		}
	}
}

// install waits for a build that is under way, which may have done it all.
func (p *Preparer) install(ctx context.Context, mod Module) Module {
	lock, err := p.Store.LockBuild(ctx, p.Waiting)
	if err != nil {
		mod.Failure = &Failure{What: err.Error()}
		return mod
	}
	defer lock.Close()
	now := p.Machine.Look(ctx)
	now.Did = mod.Did
	return p.Machine.Install(ctx, now)
}

// drop forgets the cards that are gone.
func (p *Preparer) drop(f *Facts) {
	there := Cards(p.Machine.FS)
	f.Firmware.Cards = slices.DeleteFunc(f.Firmware.Cards, func(c Card) bool {
		return !slices.ContainsFunc(there, func(t Card) bool { return t.PCI == c.PCI })
	})
}

// ask asks the cards that nobody has asked since before. Clocks do not say: they are
// set back at boot.
func (p *Preparer) ask(ctx context.Context, plan Plan, f, before *Facts) (failed error) {
	memory := p.Store.Memory()
	for _, c := range Cards(p.Machine.FS) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if plan.Only != nil && !slices.ContainsFunc(plan.Only, c.Has) {
			continue
		}
		was, _ := before.Card(c.PCI)
		if now, known := f.Card(c.PCI); known && !now.AskedAt.Equal(was.AskedAt) {
			continue
		}
		c = p.Asker.Ask(ctx, c)
		memory.Recall(f.Boot, &c)
		f.Put(c)
		failed = errors.Join(p.write(f), p.Store.WriteMemory(memory)) // which holds all cards
	}
	return failed
}

// Renew asks a card right after its settings were made, which is a new start for
// the count of boots.
func (p *Preparer) Renew(ctx context.Context, c Card, end Ending) (Card, error) {
	lock, err := p.Store.Lock(ctx, p.Waiting)
	if err != nil {
		return c, err
	}
	defer lock.Close()
	facts, _ := p.Store.Facts()
	facts.Boot = bootID(p.Machine.FS)
	memory := p.Store.Memory()
	c = p.Asker.Ask(ctx, c)
	memory.Renew(facts.Boot, &c, end)
	facts.Put(c)
	return c, errors.Join(p.write(&facts), p.Store.WriteMemory(memory))
}

func (p *Preparer) write(f *Facts) error {
	f.WrittenAt = p.Asker.now().UTC()
	return p.Store.WriteFacts(*f)
}

// Reload loads the patched module in place of the stock one, if that is safe, and
// writes down what came of it.
func (p *Preparer) Reload(ctx context.Context) (Module, error) {
	lock, err := p.Store.Lock(ctx, p.Waiting)
	if err != nil {
		return Module{}, err
	}
	defer lock.Close()
	facts, _ := p.Store.Facts()
	facts.Boot = bootID(p.Machine.FS)
	mod := p.Machine.Look(ctx)
	if ctx.Err() != nil {
		return Module{}, ctx.Err()
	}
	mod.Did = facts.Module.Did
	facts.Module = p.Machine.Reload(ctx, mod)
	return facts.Module, p.write(&facts)
}
