# shellcheck shell=bash
# What tools/test and tools/quickstart need from the system's package manager. Read with `source`.

# The build itself. CMake finds each by its own package file, and says so if one is missing.
# shellcheck disable=SC2034  # read by the scripts that source this file
BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config
  libfmt-dev libspdlog-dev nlohmann-json3-dev libyaml-cpp-dev libcli11-dev
  libopenblas-openmp-dev libxxhash-dev libopenmpi-dev openmpi-bin
)

say() { printf '%s\n' "$*"; }

die() {  # die <exit code> <text>...
  local code=$1
  shift
  printf 'tools/%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$code"
}

is_installed() {
  [[ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]
}

# install_packages <yes|no> <package>...: says what is missing, then installs it. With `no`, or where there
# is no apt-get, it only says so and goes on: what is missing may have come in another way.
install_packages() {
  local may_install=$1 package
  shift
  local missing=()
  command -v dpkg-query >/dev/null || {
    say "This system has no dpkg; make sure that the equivalents of these are installed: $*"
    return 0
  }
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    say "All ${#} packages that are needed are installed."
    return 0
  fi
  if [[ $may_install == no ]]; then
    say "Not installed, and --no-install forbids it: ${missing[*]}"
    return 0
  fi
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die 2 "needs root or sudo to install: ${missing[*]}. As root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "Will install with apt-get: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
  "${apt[@]}" update -qq </dev/null ||
    say "The package lists could not be updated; trying with those that are here."
  "${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}" </dev/null ||
    die 1 "apt-get could not install: ${missing[*]}"
}
