#!/usr/bin/env bash
# Build libjpeg-turbo, which the wheels contain, into the folder of the first argument.
set -euo pipefail
prefix=$1
version=3.1.2
sha256=8f0012234b464ce50890c490f18194f913a7b1f4e6a03d6644179fa0f867d0cf
# Its vector instructions need NASM on x86.
command -v nasm >/dev/null || dnf -y install nasm || apk add nasm || brew install nasm || choco install -y nasm
export PATH="$PATH:/c/Program Files/NASM"
python3 -m pip install --quiet cmake || pip install --quiet cmake
folder=$(mktemp -d)
cd "$folder"
archive=libjpeg-turbo-$version.tar.gz
curl -fsSL --retry 5 -o $archive "https://github.com/libjpeg-turbo/libjpeg-turbo/releases/download/$version/$archive"
echo "$sha256  $archive" | { sha256sum -c - || shasum -a 256 -c -; }
tar xzf $archive
cmake -S libjpeg-turbo-$version -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
	-DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON -DCMAKE_POSITION_INDEPENDENT_CODE=ON
cmake --build build --config Release --parallel
cmake --install build --config Release
