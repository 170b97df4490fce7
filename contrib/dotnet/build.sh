#!/bin/sh
# Builds the assemblies with Debian's mcs: sh build.sh [OUTPUT [NAME …]]
#
# One source has four names. Programs look for an assembly and a namespace of that name, so each name gets a copy
# of the source in which it stands for System.Messaging.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/build}
mkdir -p "$output"
output=$(cd "$output" && pwd)
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- System.Messaging MSMQ.Messaging Experimental.System.Messaging Particular.Msmq

# The public key of the assemblies of .NET Framework, whose token is b03f5f7f11d50a3a. Mono and .NET load an
# assembly that is signed only in part; .NET Framework does not, and has its own System.Messaging.
key=002400000480000094000000060200000024000052534131000400000100010007d1fa57c4aed9f0a32e84aa0faefd0de9e8fd6aec8f87fb\
03766c834c99921eb23be79ad9d5dcc1dd9ad236132102900b723cf980957fc4e177108fc607774f29e8320e92ea05ece4e821c0a5efe8f1645c4c0c\
93c1ab99285d622caa652c1dfad63d745d6f2de5f17e5eaf0fc4963d261c8a12436518206dc093344d5ad293

for name; do
    folder=$output/$name
    rm -rf "$folder/source"
    mkdir -p "$folder/source"
    (cd "$here/src" && find . -name '*.cs' | while read -r file; do
        mkdir -p "$folder/source/$(dirname "$file")"
        sed "s/System\.Messaging/$name/g" "$file" > "$folder/source/$file"
    done)
    symbol=$(echo "$name" | tr '[:lower:].' '[:upper:]_')
    set --
    if [ "$name" = System.Messaging ]; then
        echo "$key" | sed 's/../\\x&/g' | xargs -0 printf '%b' | head -c 160 > "$folder/public.snk"
        set -- -keyfile:"$folder/public.snk" -delaysign+ -r:System.Configuration.Install.dll
    fi
    mcs -nologo -target:library -langversion:7.2 -warnaserror -optimize+ -debug- -define:"$symbol" \
        -r:System.Core.dll -r:System.Xml.dll -r:System.Transactions.dll "$@" \
        -out:"$folder/$name.dll" -recurse:"$folder/source/*.cs"
    rm -rf "$folder/source" "$folder/public.snk"
    echo "$folder/$name.dll"
done
