# A thin front of CMake. Each target installs the Debian packages it lacks.

.PHONY: all install-packages run test asan tsan model planted bench-echo \
        bench-limits bench-timers bench-instructions \
        docs format check clean

all: build-release

install-packages:
	@tools/install.sh

build-%: install-packages
	@cmake --preset $* >build/$*.configure.log 2>&1 || \
		{ cat build/$*.configure.log; exit 1; }
	@cmake --build --preset $*

# cmake writes its log there.
$(shell mkdir -p build)

run: build-release
	@tools/run.sh build/release/examples

test: build-release
	@tools/test.sh build/release

asan: build-asan
	@tools/test.sh build/asan

tsan: build-tsan
	@tools/test.sh build/tsan

# The same for the other builds: make test-unity, test-lto, test-clang, ...
test-%: build-%
	@tools/test.sh build/$*

# Half a minute of random cancellation against a model, alone and beside four
# threads; the same in clang's ThreadSanitizer; and bugs planted for it to find.
model: build-release build-tsan
	@COIL_MODEL_SECONDS=30 build/release/tests/model_test_scopes
	@COIL_MODEL_SECONDS=30 build/tsan/tests/model_test_scopes

planted: install-packages
	@tools/planted.sh 30

bench-echo: build-release
	@build/release/bench/bench_echo --connections 64,1000 --pairs 60 \
		--starts 12 --slice 60 --budget 0.05 \
		--floor build/release/bench/echo_floor \
		--server build/release/examples/echo_server \
		--load build/release/bench/echo_load
	@$(MAKE) --no-print-directory bench-instructions

# What a limit on every read and write costs: against none, where the second
# figure is none against none, and kept by the kernel instead.
bench-limits: build-release
	@for limits in both linked; do \
		echo "limits: $$limits against none"; \
		build/release/bench/bench_echo --connections 64,1000 \
			--pairs 60 --starts 12 --slice 60 \
			--floor build/release/bench/echo_coil \
			--floor-arg --limits --floor-arg none \
			--server build/release/bench/echo_coil \
			--server-arg --limits --server-arg $$limits \
			--load build/release/bench/echo_load; \
	done

# The table of timer queues behind docs/decisions.md; three minutes.
bench-timers: build-release
	@build/release/bench/bench_timers

bench-instructions: build-release
	@for server in "echo_floor" "echo_coil --limits none" \
			"echo_coil --limits write" "echo_coil --limits both" "echo_coil --limits linked"; do \
		echo "$$server"; \
		bench/instructions.sh --load build/release/bench/echo_load \
			build/release/bench/$$server; \
	done

docs: install-packages
	@mkdir -p build/docs
	@doxygen docs/Doxyfile

format: install-packages
	@clang-format -i $$(git ls-files '*.c' '*.h')

check: install-packages
	@tools/check.sh

clean:
	rm -rf build
