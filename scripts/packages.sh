# The Debian packages that Leeway stands on, and a function that installs what is missing of them.
# Sourced by ./quickstart and ./run-tests.
# shellcheck shell=bash

# To build and run.
# shellcheck disable=SC2034
build_packages=(
  g++ cmake ninja-build pkg-config
  libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  libeigen3-dev libyaml-cpp-dev libcli11-dev libspdlog-dev nlohmann-json3-dev zlib1g-dev libssl-dev libre2-dev
  libpng-dev libturbojpeg0-dev libzip-dev libdnnl-dev libcurl4-openssl-dev libpugixml-dev
)
# To test, besides. The clients in Python use the distribution's interpreter and its gRPC.
# shellcheck disable=SC2034
test_packages=(
  catch2 libbenchmark-dev clang clang-format universal-ctags git python3 python3-grpcio python3-yaml python3-protobuf python3-numpy python3-pil iproute2 nftables e2fsprogs openssl patchelf
  python3-torch libopenblas0-pthread python3-setuptools python3-wheel
)
# Other packagings of Node.js bring npm with them, and do not go together with the distribution's.
command -v npm >/dev/null || test_packages+=(nodejs npm)

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
  local installed package
  installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "$package installed" <<<"$installed" || echo "$package"
  done
}

# install_missing PACKAGE...: installs those that are not there, with sudo when not root. Looks at the
# package lists on the disk first and fetches new ones only where these do not do.
install_missing() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This is no Debian or Ubuntu; the build expects what these packages hold: $*" >&2
    return 0
  fi
  local missing=() as_root=()
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then
    return 0
  fi
  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  if [[ $EUID -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "Neither root nor sudo is here. As root: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  local install=(apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}")
  local update=("${as_root[@]}" apt-get update --quiet)
  # No lists at all, as in a fresh container, or too old ones.
  if ! "${install[@]}" --simulate </dev/null >/dev/null 2>&1; then
    "${update[@]}" </dev/null
  fi
  if ! "${as_root[@]}" "${install[@]}" </dev/null; then
    "${update[@]}" </dev/null
    "${as_root[@]}" "${install[@]}" </dev/null
  fi
}
