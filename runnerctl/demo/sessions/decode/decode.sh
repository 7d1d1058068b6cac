# worth FIGURE: prints what one figure is worth.
worth() {
    case $1 in
        I) echo 1 ;;
        V) echo 5 ;;
        X) echo 10 ;;
        L) echo 50 ;;
        C) echo 100 ;;
        D) echo 500 ;;
        M) echo 1000 ;;
        *) return 1 ;;
    esac
}

# decode NUMERAL: prints a Roman numeral as a number.
decode() {
    rest=$1
    total=0
    before=0
    while [ -n "$rest" ]; do
        value=$(worth "${rest%"${rest#?}"}") || return 1
        total=$((total + value))
        # A smaller figure before a larger one was added, and is to be taken off.
        [ "$before" -eq 0 ] || [ "$before" -ge "$value" ] || total=$((total - 2 * before))
        before=$value
        rest=${rest#?}
    done
    printf '%s\n' "$total"
}
