#!/usr/bin/env bash
# Runs tests on an emulated aarch64: tools/aarch64.sh FOLDER [pytest arguments], as root on Debian or Ubuntu, outside of any container
# that forbids chroot. Needs debootstrap, qemu-user-static, binfmt support, gcc-aarch64-linux-gnu, and `make test` done once.
# FOLDER receives a Debian for arm64; the native modules are cross-compiled, because a compiler under emulation takes an hour.
set -euo pipefail

project=$(cd "$(dirname "$0")/.." && pwd)
root=$(mkdir -p "${1:?folder for the arm64 system}" && cd "$1" && pwd)
shift
python=$project/.venv/bin/python

for program in debootstrap qemu-aarch64-static aarch64-linux-gnu-gcc; do
    command -v "$program" >/dev/null || { echo "not installed: $program" >&2; exit 1; }
done

if [[ ! -e $root/.complete ]]; then
    debootstrap --arch=arm64 --variant=minbase --include=python3,libpython3.11-dev,ca-certificates \
        bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
    touch "$root/.complete"
fi

# Wheels for aarch64, unpacked from here: pip under emulation is slow too.
mapfile -t requirements < <(cd "$project" && "$python" tools/requirements.py runtime test)
"$python" -m pip install --quiet --upgrade --target "$root/opt/site" --only-binary=:all: \
    --implementation cp --python-version 3.11 --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 \
    --platform manylinux_2_17_aarch64 "${requirements[@]}"

rm -rf "$root/opt/msmq-fast"
mkdir -p "$root/opt/msmq-fast"
cp -r "$project"/{pyproject.toml,src,tests,tools,docs,bench} "$root/opt/msmq-fast/"
find "$root/opt/msmq-fast" -name '*.so' -delete

for source in "$project"/build/c/src/_native/*.c; do
    module=$(basename "$source" .c)
    aarch64-linux-gnu-gcc -shared -fPIC -O3 -fno-strict-aliasing -pthread -I "$project/src/_native" \
        -I "$root/usr/include/python3.11" -idirafter "$root/usr/include" "$source" \
        -o "$root/opt/msmq-fast/src/msmq_fast/_native/$module.cpython-311-aarch64-linux-gnu.so"
done

mount --bind /proc "$root/proc"
trap 'umount "$root/proc"' EXIT
chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/opt/site:/opt/msmq-fast/src:/opt/msmq-fast \
    sh -c 'cd /opt/msmq-fast && exec python3 -m pytest -p no:cacheprovider -o timeout=900 -m "not long" "$@"' sh "$@"
