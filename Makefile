# SPDX-License-Identifier: Apache-2.0
#
# Two commands matter: `make demo` and `make test`. `make help` lists the rest.

VERSION   := 0.1.0
GO        ?= go
FUZZTIME  ?= 5s
FLEXSTEER_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/flexsteer
PREFIX    ?= /usr
DESTDIR   ?=
# Where files of the system go that have no PREFIX. UNITS=no: without units and
# udev rules, which Debian's own tools install.
UNITS     ?= yes
UNITDIR   ?= /usr/lib/systemd/system
UDEVDIR   ?= /usr/lib/udev/rules.d
ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/site-functions
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOBUILD   := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

.PHONY: help build check test demo lint race laws fuzz vuln module bench deps lab boot packages packages-test completions install installmodule clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

build: ## build flexsteerd and flexsteerctl into bin/
	@mkdir -p bin
	$(GOBUILD) -o bin/ ./cmd/...

check: lint ## the fast part: lint and tests, without root, under two minutes
	$(GO) test ./...
	cd sim && $(GO) test ./...
	$(MAKE) -C kernel check

# All of packages-test but its part named kernel, which compiles the module ten times over.
test: deps lint vuln race laws fuzz module lab boot demo ## everything; installs what it needs, as root
	$(MAKE) packages-test ONLY='^(static|debian|service|rpm)'

# What the lab takes of this machine, besides Go: it lays the rest by itself.
LAB_DEPS := ca-certificates gcc libc6-dev util-linux xz-utils

demo: ## the main job on a virtual card: packets for each queue, before and after (root; the first time some ten minutes)
	@scripts/deps $(LAB_DEPS)
	@cd test/lab && $(GO) run ./demo

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l *.go cmd internal pkg sim test | tee /dev/stderr)" || { echo 'gofmt: the files above need gofmt -w'; exit 1; }
	@for module in . sim; do echo "go vet, staticcheck: $$module"; \
		(cd $$module && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...) || exit 1; done

race: ## all Go tests under the race detector; as root also those in network namespaces
	FLEXSTEER_WORLDS=300 $(GO) test -race ./... # make laws looks at more of them
	cd sim && $(GO) test -race ./...

laws: ## the laws of pkg/steer over 24,000 random worlds, and the fault sweeps
	FLEXSTEER_WORLDS=24000 $(GO) test -timeout 30m -v -run 'RulesDecide|NoRuleCould|APlanReaches' ./pkg/steer
	$(GO) test -v -run 'Fail|Kill|Last|Whatever' ./pkg/reconcile

fuzz: ## each fuzz target for FUZZTIME (5s)
	@scripts/fuzz $(FUZZTIME)

vuln: ## known vulnerabilities in what we import, where the database can be reached
	@GOBIN=$(FLEXSTEER_CACHE)/bin $(GO) install $(GOVULNCHECK)
	@$(FLEXSTEER_CACHE)/bin/govulncheck ./... || { test $$? -ne 3 && echo 'govulncheck: skipped: it could not run'; }

module: ## the kernel module: unit tests, builds by DKMS for each kernel, symbols, load tests in a VM (root)
	$(MAKE) -C kernel test

packages: ## Debian packages and RPMs, for amd64 and arm64, into build/packages
	@packaging/build

packages-test: packages ## what is in the packages, and what they do in a Debian root of their own (root)
	@packaging/test/test

EXPERIMENTS = cd test/lab && FLEXSTEER_LAB=1 $(GO) test -count=1 -timeout 60m $(if $(VERBOSE),-v) \
		-run '$(1)/$(if $(KERNEL),^$(KERNEL)-,.)/$(subst $(empty) ,_,$(or $(ONLY),.))'

lab: ## experiments in virtual machines with a virtual card (root); ONLY=words of a name, KERNEL=6.12, VERBOSE=1
	@scripts/deps $(LAB_DEPS)
	@$(call EXPERIMENTS,TestLab)

boot: deps packages ## experiments with an installed system that boots with a virtual card (root); ONLY= and so on as for lab
	@$(call EXPERIMENTS,TestBoot)

bench: ## benchmarks; docs/performance.md has the figures
	$(GO) test -run '^$$' -bench . -benchmem ./...

deps: ## install the Debian packages that the tests need (root)
	@scripts/deps

completions: # of flexsteerctl, made by a program for this machine, whatever GOARCH is
	@mkdir -p bin/completions
	@for shell in bash zsh fish; do \
		GOARCH= CGO_ENABLED=0 $(GO) run ./cmd/flexsteerctl completion $$shell >bin/completions/$$shell || exit 1; done

install: build completions ## install into DESTDIR and PREFIX
	install -D -t $(DESTDIR)$(PREFIX)/sbin bin/flexsteerd
	install -D -t $(DESTDIR)$(PREFIX)/bin bin/flexsteerctl
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 docs/man/flexsteer.yaml.5
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 docs/man/flexsteerd.8
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 docs/man/flexsteerctl.1
	install -D -m 644 pkg/config/schema.json $(DESTDIR)$(PREFIX)/share/flexsteer/flexsteer.schema.json
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/flexsteer/examples examples/*.yaml
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/flexsteer/examples/web-server.yaml.d examples/web-server.yaml.d/*.yaml
	install -D -m 644 bin/completions/bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/flexsteerctl
	install -D -m 644 bin/completions/zsh $(DESTDIR)$(ZSH_COMPLETIONS)/_flexsteerctl
	install -D -m 644 bin/completions/fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/flexsteerctl.fish
	install -D -m 644 -t $(DESTDIR)/usr/lib/systemd/catalog packaging/systemd/flexsteer.catalog
	install -D -m 644 -t $(DESTDIR)/etc/flexsteer packaging/flexsteerd.yaml
ifneq ($(wildcard vendor),) # what the Apache licence asks for of what is linked in
	find vendor -name NOTICE | sort | xargs tail -n +1 >$(DESTDIR)$(PREFIX)/share/doc/flexsteer/NOTICE
endif
ifeq ($(UNITS),yes)
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) packaging/systemd/*.service
	sed -i 's|=/usr/\(s\?bin\)/|=$(PREFIX)/\1/|' $(DESTDIR)$(UNITDIR)/flexsteer*.service
	install -D -m 644 packaging/systemd/flexsteer.udev $(DESTDIR)$(UDEVDIR)/60-flexsteer.rules
	install -D -m 644 packaging/systemd/flexsteer.sysusers $(DESTDIR)/usr/lib/sysusers.d/flexsteer.conf
endif

SRC_MODULE = $(DESTDIR)/usr/src/flexsteer-mlx5-$(VERSION)
LIB_MODULE = $(DESTDIR)/usr/libexec/flexsteer-mlx5

installmodule: # the source of the kernel module, and what builds it when kernels come
	mkdir -p $(SRC_MODULE)
	cp -rT kernel/dkms $(SRC_MODULE)
	chmod -R u=rwX,go=rX $(SRC_MODULE)
# Our hooks have it built. dkms 3.0 would end the installation of a kernel with an
# error if it can not be, and does not look into /etc/dkms for that.
	sed -i 's/^AUTOINSTALL=.*/AUTOINSTALL=""/' $(SRC_MODULE)/dkms.conf
	install -D -t $(LIB_MODULE) packaging/module/update
	install -D -m 644 packaging/module/sources.txt $(DESTDIR)/usr/src/flexsteer-mlx5/sources/README

clean: ## remove what was built
	rm -rf bin build
