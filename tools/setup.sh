#!/usr/bin/env bash
# Brings the development set-up in .venv and build/ up to date: system packages, Python packages, the compiled core.
# Each step first looks whether it is needed, so a run with nothing to do takes an instant and touches no network.
# Setting PYTHON or CXX chooses another interpreter or compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CXX=${CXX:-g++}
venv=.venv

say() { printf '== %s\n' "$*" >&2; }
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# The interpreter under a virtual environment or a version manager's shim: .venv must not be renewed by itself.
python=$("${PYTHON:-python3}" -c 'import sys; assert sys.version_info >= (3, 10); print(sys._base_executable)' \
    2>/dev/null) || fail "needs Python 3.10 or later; PYTHON=/path/to/python3 chooses one"

mkdir -p build
exec 9>build/.lock
flock 9 # two runs at once in one tree would write the same files

# --- system packages ----------------------------------------------------------------------------------------------

compiles_cxx20() { "$CXX" -std=c++20 -fsyntax-only -x c++ - <<<'#include <concepts>' 2>/dev/null; }
makes_venvs() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }
has_headers() { [ -e "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]; }

# Debian packages that are still missing, on one line.
missing_packages() {
    compiles_cxx20 || printf 'g++ '
    command -v nasm >/dev/null || printf 'nasm '
    makes_venvs || printf 'python3-venv '
    has_headers || printf 'python3-dev '
}

install_system_packages() {
    local missing
    missing=$(missing_packages)
    missing=${missing% }
    [ -n "$missing" ] || return 0

    local command="apt-get update && apt-get install -y --no-install-recommends $missing"
    command -v apt-get >/dev/null || fail "needed, and no apt-get to install it with (Debian's names): $missing"
    if [ "$(id -u)" = 0 ]; then
        say "installing $missing"
        DEBIAN_FRONTEND=noninteractive sh -c "$command" >&2 </dev/null
    elif sudo -n true 2>/dev/null; then
        say "installing $missing"
        sudo -n sh -c "export DEBIAN_FRONTEND=noninteractive; $command" >&2 </dev/null
    else
        fail "some system packages are missing; please run this, then make again:

    sudo sh -c '$command'
"
    fi

    # An interpreter or compiler from elsewhere is not completed by Debian's packages.
    missing=$(missing_packages)
    [ -z "$missing" ] || fail "installed, yet $(command -v "$python") or $CXX still lacks: $missing"
}

# --- Python packages ----------------------------------------------------------------------------------------------

# The stamp holds what .venv was made from, so another interpreter or a changed lock renews it.
wanted_venv() {
    "$python" -c 'import sys; print(sys.version, sys.base_prefix)'
    cksum requirements.lock
}

install_python_packages() {
    local wanted
    wanted=$(wanted_venv)
    if [ "$wanted" = "$(cat "$venv/.stamp" 2>/dev/null)" ] && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
    say "installing the packages of requirements.lock into $venv"
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
    printf '%s\n' "$wanted" >"$venv/.stamp"
}

# --- the emulator itself ------------------------------------------------------------------------------------------

# The first build is an editable install: Python files are imported from the tree, the compiled module from .venv.
# From then on Ninja, which knows what changed, builds in the same directory, and what came out is installed over it.
build_emulator() {
    local tools wanted site
    tools=$(cat "$venv/.stamp" && "$CXX" --version && pwd)
    if [ "$tools" != "$(cat build/.tools 2>/dev/null)" ]; then
        rm -rf build/editable-* build/sanitize
        printf '%s\n' "$tools" >build/.tools
    fi

    wanted=$tools$(cksum pyproject.toml)
    if [ "$wanted" != "$(cat "$venv/.stamp-emu" 2>/dev/null)" ] ||
        ! compgen -G 'build/editable-*/build.ninja' >/dev/null; then
        say "building emu"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
            --no-build-isolation --editable .
        ln -sf build/editable-*/compile_commands.json .
        printf '%s\n' "$wanted" >"$venv/.stamp-emu"
    else
        site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
        "$venv/bin/cmake" --build build/editable-* |
            { grep -v -e 'no work to do' -e 'Re-checking globbed' || true; } >&2
        "$venv/bin/cmake" --install build/editable-* --prefix "$site" >/dev/null
        for guest in "$site"/emu/guests_data/*.{asm,bin}; do
            [ -e "guests/$(basename "${guest%.*}").asm" ] || rm -f "$guest" # its source is gone
        done
    fi
}

install_system_packages
install_python_packages
build_emulator
