#!/usr/bin/env bash
# Runs each fuzz target for some seconds and prints a table; exits 1 if any found something.
# Usage: tests/fuzz/run.sh [SECONDS [TARGET...]]     what is found and what is new: build/fuzz/found/TARGET
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${1:-60}
targets=("${@:2}")
build=$root/build/fuzz
if [[ ! -f $build/build.ninja ]]; then
  (cd "$root" && cmake --preset fuzz >/dev/null)
fi
if [[ ${#targets[@]} -eq 0 ]]; then
  for folder in "$root"/tests/fuzz/corpus/*/; do
    targets+=("$(basename "$folder")")
  done
fi
cmake --build "$build" --target "${targets[@]/%/_fuzz}" >/dev/null

# Targets that read files write them first: into memory, not to a disk.
scratch=$(mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" leeway-fuzz-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch
# Little of what was freed is remembered, so that long runs stay within the limit for one input.
export ASAN_OPTIONS=quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}

# last LOG PATTERN: prints the number after the last match.
last() {
  { grep -oE "$2 *[0-9]+" "$1" || true; } | tail -n 1 | grep -oE '[0-9]+$' || echo 0
}

failed=0
printf '%-18s %12s %8s %8s %10s %8s\n' target executions edges features 'last new s' findings
for target in "${targets[@]}"; do
  found=$build/found/$target
  mkdir -p "$found/corpus"
  log=$found/log
  # A line for each new input says when coverage last grew.
  started=$(date +%s)
  nice -n 10 "$build/bin/${target}_fuzz" "$found/corpus" "$root/tests/fuzz/corpus/$target" \
    -max_total_time="$seconds" -rss_limit_mb=512 -timeout=5 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$found/" >"$log" 2>&1 || failed=1
  newest=$(find "$found/corpus" -type f -printf '%T@\n' | sort -n | tail -n 1 | cut -d. -f1)
  findings=$(find "$found" -maxdepth 1 -type f \( -name 'crash-*' -o -name 'timeout-*' -o -name 'oom-*' -o -name 'leak-*' \) \
    -newermt "@$((started - 1))" | wc -l)
  printf '%-18s %12d %8d %8d %10d %8d\n' "$target" "$(last "$log" 'stat::number_of_executed_units:')" \
    "$(last "$log" ' cov:')" "$(last "$log" ' ft:')" "$((${newest:-$started} > started ? ${newest:-$started} - started : 0))" \
    "$findings"
done
exit $failed
