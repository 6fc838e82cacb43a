# A build as one line of progress, with the time that is left. Sourced by ./quickstart.
# shellcheck shell=bash

# build_with_progress BUILD TARGET...: what the build prints goes into BUILD/build.log, and to the screen if it fails.
build_with_progress() {
  local build=$1 log=$1/build.log
  shift
  if NINJA_STATUS="[%f/%t] " cmake --build "$build" --target "$@" 2>&1 | tee "$log" | show_progress; then
    return 0
  fi
  echo "The build failed; its last lines, of $log:" >&2
  tail -n 40 "$log" >&2
  return 1
}

# show_progress: reads lines such as "[12/74] Building ..." and shows how far it is: on a terminal in one line that
# changes, elsewhere in one line for each quarter.
show_progress() {
  local line steps done_steps percent shown=0 seconds left
  local began=$SECONDS
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    done_steps=${BASH_REMATCH[1]} steps=${BASH_REMATCH[2]}
    percent=$((100 * done_steps / steps))
    seconds=$((SECONDS - began))
    left="some minutes"
    # The first steps say little.
    if [[ $seconds -ge 20 && $percent -ge 10 ]]; then
      left="$((seconds * (100 - percent) / percent / 60 + 1)) min"
    fi
    if [[ -t 1 ]]; then
      printf '\rBuilding: %3d %%, %s left \e[K' "$percent" "$left"
    elif [[ $((percent / 25)) -gt $shown && $percent -lt 100 ]]; then
      shown=$((percent / 25))
      echo "Building: $percent %, $left left"
    fi
  done
  if [[ -t 1 ]]; then printf '\r\e[K'; fi
}
