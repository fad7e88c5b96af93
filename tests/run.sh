#!/usr/bin/env bash
# Installs what is needed, builds, and runs all tests. Works from a fresh clone.
# Use: tests/run.sh [PRESET]   (default: release)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-release}
.ci/deps
cmake --preset "$preset"
cmake --build --preset "$preset"
ctest --preset "$preset"
