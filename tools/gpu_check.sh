#!/usr/bin/env bash
# What only a GPU can show, in under six minutes: builds and installs the package, asks the driver the litmus
# questions, runs tests/gpu, times copies and runs the benchmark for devices, quickly. Prints one compact table last. No network is used.
#   tools/gpu_check.sh [WHEELS]     WHEELS: a folder of wheels to install first: apache-tvm-ffi, and what is missing
# Logs and figures go to $OUT, else to build/gpu-check. Each step has its own time limit; the next follows in any case.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

wheels=${1:-}
out=${OUT:-$PWD/build/gpu-check}
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
rm -f "$out"/{facts,wheels,build,litmus-build,litmus,tests,copies,bench}.log "$out"/{litmus,copies,bench}.json
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INDEX=1
export PYTHONUNBUFFERED=1 TENSORFERRY_REQUIRE_GPU=1
jobs=$(nproc)
deadline=350 # seconds after the start; the table takes the rest
rows=()
failed=0

# step NAME SECONDS RESERVE COMMAND...: RESERVE is the time that later steps must still find.
step() {
  local name=$1 limit=$2 reserve=$3 log="$out/${1}.log" began=$SECONDS code result note
  shift 3
  local left=$((deadline - reserve - SECONDS))
  ((left < limit)) && limit=$left
  printf '\n== %s (%ss, at most %ss)\n' "$name" "$SECONDS" "$limit"
  if ((limit < 5)); then
    rows+=("$(printf '%-14s %-10s %5s  %s' "$name" "no time" 0 "")")
    failed=1
    return 1
  fi
  timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1
  code=$?
  case $code in
    0) result=ok ;;
    124 | 137) result="timed out" ;;
    *) result="failed $code" ;;
  esac
  ((code == 0)) || failed=1
  note=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | tr -d '\r' | cut -c 1-100)
  rows+=("$(printf '%-14s %-10s %5s  %s' "$name" "$result" $((SECONDS - began)) "$note")")
  tail -n "$( ((code == 0)) && echo 3 || echo 40)" "$log" | cut -c 1-200
  if ((code == 0)) && [[ $name == wheels || $name == litmus-build ]]; then rm -f "$log"; fi # nobody reads those
  return $code
}

facts() {
  nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current,memory.total \
    --format=csv,noheader
  nvcc --version | tail -n 1
  "$python" - <<'P'
import importlib.util, platform, sys
needed = ["torch", "numpy", "ml_dtypes", "pybind11", "scikit_build_core", "tvm_ffi", "pytest"]
print("missing:", *[name for name in needed if importlib.util.find_spec(name) is None] or ["nothing"])
import torch
gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
print(f"Python {platform.python_version()}, torch {torch.__version__}, {gpu}")
sys.exit(gpu == "no GPU")
P
}

install_wheels() { "$python" -m pip install --quiet --no-deps "$wheels"/*.whl && ls "$wheels"; }

build() {
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs "$python" -m pip install --no-build-isolation --no-deps --force-reinstall \
    --config-settings=build-dir="$work/package" .
}

litmus_build() {
  cmake -G Ninja -S tests/driver_litmus -B "$work/litmus" && cmake --build "$work/litmus" -j "$jobs"
}

export python work out wheels jobs
export -f facts install_wheels build litmus_build

step facts 20 300 bash -c facts
if [ -n "$wheels" ]; then step wheels 40 280 bash -c install_wheels; fi
step build 150 150 bash -c build
step litmus-build 75 115 bash -c litmus_build
if [ -x "$work/litmus/ferry_driver_litmus" ]; then
  step litmus 60 100 "$work/litmus/ferry_driver_litmus" --differences --json "$out/litmus.json"
fi
cp tools/gpu_copy_times.py tools/gpu_bench.py "$work/" # run from elsewhere, so that the installed package is what it imports
step tests 150 75 "$python" -m pytest tests/gpu --quiet -p no:cacheprovider --confcutdir=tests/gpu --no-header \
  -W ignore::tensorferry.ExtensionDTypeWarning --tb=short --maxfail=40
step copies 45 40 "$python" "$work/gpu_copy_times.py" --json "$out/copies.json"
step bench 60 0 "$python" "$work/gpu_bench.py" --seconds 35 --json "$out/bench.json"

printf '\n==== GPU check, %s s\n' "$SECONDS"
[ -f "$out/facts.log" ] && grep -v '^missing: nothing' "$out/facts.log"
printf '%-14s %-10s %5s  %s\n' step result s "last line"
printf '%s\n' "${rows[@]}"
[ -f "$out/copies.json" ] && cat "$out/copies.log"
[ -f "$out/bench.json" ] && cat "$out/bench.log"
exit "$failed"
