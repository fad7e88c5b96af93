#!/usr/bin/env bash
# Installs what is needed, builds, and trains a Tree-LSTM on generated ListOps expressions: a few minutes on two cores.
# The model ends in build/quickstart; further arguments go to `cavs train`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

.ci/deps
cmake --preset release
cmake --build --preset release --target cavs_command
build/release/bin/cavs train --model=tree_lstm --train=listops:generate --dev=listops:generate --test=listops:generate \
  --hidden=128 --embed=64 --batch_size=50 --epochs=20 --optimizer=adam --lr=0.002 --save=build/quickstart "$@"
