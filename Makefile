# Task names for meson and ninja. Every build flavour has its own directory.
PREFIX ?= /usr/local
WERROR ?= false
ARCHITECTURES ?= amd64 arm64
export ARCHITECTURES
# Groups of scripts/deps.sh for the architectures that are not this machine's.
cross = $(patsubst %,cross-%,$(filter-out $(shell dpkg --print-architecture),$(ARCHITECTURES)))

options_build       := -Dwerror=$(WERROR) -Dprefix=$(PREFIX)
options_build-debug := -Dwerror=true -Doptimization=0
options_build-asan  := -Dwerror=true -Doptimization=1 -Db_sanitize=address,undefined
options_build-tsan  := -Dwerror=true -Doptimization=1 -Db_sanitize=thread
options_build-coverage := -Doptimization=0 -Db_coverage=true
options_build-fuzz  := -Dfuzzers=true -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false

all: build/build.ninja ## release build: build/pinfold
	@ninja -C build product
	@echo "built build/pinfold; next: make demo, make test, make install"

debug asan tsan: %: build-%/build.ninja ## the same in build-debug, build-asan, build-tsan
	@ninja -C build-$@ pinfold

demo: all ## show what Pinfold does on this machine
	@scripts/demo.sh

test: deps-build deps-test build/build.ninja build-asan/build.ninja ## every test, in the release build and with sanitizers
	@scripts/test.sh

lint: deps-lint build/build.ninja ## formatting, static analysis, includes, citations, words, names, docs
	@scripts/lint.sh

format: deps-lint ## format the C files
	@find src tests -name '*.[ch]' -exec clang-format-14 -i {} +

bench: deps-bench all ## run the benchmarks
	@tests/bench/run

fuzz: build-fuzz ## every fuzz target for FUZZ_SECONDS (60), or RUNS inputs over all of them
	@scripts/fuzz.sh run

fuzz-campaign: build-fuzz ## RUNS inputs in pieces; goes on where it was interrupted
	@scripts/fuzz.sh campaign

fuzz-corpus: build-fuzz ## take what fuzzing found into tests/fuzz/corpus, minimised
	@scripts/fuzz.sh corpus

build-fuzz: deps-lint
	@CC=clang-14 $(MAKE) --no-print-directory build-fuzz/build.ninja

coverage: deps-build deps-test build-coverage/build.ninja ## lines of the parsers that the corpus and the unit tests reach
	@ninja -C build-coverage --quiet product meson-test-prereq
	@scripts/coverage.py build-coverage

model: deps-build deps-test build/build.ninja ## every scenario of the model checker
	@ninja -C build --quiet tests/model/model_node
	@PINFOLD_MODEL=full build/tests/model/model_node

proofs: deps-proofs ## prove properties of the smallest parsers with CBMC, each also with a seeded bug
	@tests/proofs/run

faults: deps-build deps-test all ## let every system call fail once, and kill the agent 10,000 times
	@ninja -C build --quiet tests/fault/libfault.so tests/bench/nri_runtime
	@PINFOLD=$(CURDIR)/build/pinfold FAULTS=1000000 KILLS=$(or $(KILLS),10000) tests/fault/run \
		$(CURDIR)/build/tests/fault/libfault.so build/tests/bench/nri_runtime

e2e: all ## test against real components; SMOKE=1 for a short round
	@SMOKE=$(SMOKE) bash tests/e2e/run

cluster: all ## a real cluster on this machine to try it: NODES=2 CPUS="8 4" NUMA=2 RUNTIME=crio; see docs/try.md
	@tests/e2e/cluster up

soak: all ## random actions and kills for HOURS=N or SECONDS=N, while invariants are checked from outside; NODES=2 on virtual nodes
	@HOURS='$(HOURS)' DURATION='$(SECONDS)' tests/e2e/soak$(if $(NODES),-nodes).sh

install uninstall: build/build.ninja ## install to PREFIX below DESTDIR, or remove it from there
	@DESTDIR='$(DESTDIR)' scripts/install.sh $@ build '$(PREFIX)'

static: ## programs without shared libraries for ARCHITECTURES: build-static-*/root/usr/bin/pinfold
	@scripts/deps.sh build static $(cross)
	@packaging/static.sh $(ARCHITECTURES)

image: static ## an OCI image for ARCHITECTURES in dist, without a container daemon
	@packaging/image.sh

packages: deps-package static ## Debian and RPM packages for ARCHITECTURES in dist
	@packaging/packages.sh

release: deps-package ## everything that is published, in dist: image, packages, programs, SBOMs, checksums, signature
	@packaging/release.sh --check
	@rm -rf dist
	@$(MAKE) --no-print-directory image packages
	@packaging/release.sh

test-packages: ## try static programs, image, packages and release in root directories of their own
	@tests/packages/run

deps: deps-build ## install missing build dependencies
deps-package:
	@scripts/deps.sh build static package $(cross)
deps-%:
	@scripts/deps.sh $*

clean: ## remove build results, except for fetched dependencies
	@rm -rf build-debug build-asan build-tsan build-fuzz build-coverage build-static-* dist
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +

distclean:
	@rm -rf build build-debug build-asan build-tsan build-fuzz build-coverage build-static-* dist

help:
	@sed -n 's/^\([a-z][a-z0-9 -]*\):.*## /\1\t/p' Makefile | expand -t 20

%/build.ninja: | deps-build
	@meson setup $* $(options_$*) >/dev/null || { cat $*/meson-logs/meson-log.txt; exit 1; }

.PHONY: all debug asan tsan demo test lint format bench fuzz fuzz-campaign fuzz-corpus build-fuzz coverage model proofs faults e2e cluster soak install uninstall static image packages release test-packages deps deps-package clean distclean help
